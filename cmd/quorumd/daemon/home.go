// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
)

// about is what the page at the root of the metrics port says of this quorumd.
type about struct {
	Version, Host, Cluster string
	// FleetLock is where reboot agents of this host ask; empty when nobody listens for them.
	FleetLock string
}

// home is the page at the root of the metrics port. It loads nothing from anywhere.
const home = `<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>quorumd on {{.Host}}</title></head>
<body>
<h1>quorumd on {{.Host}}</h1>
<p>Version {{.Version}}, cluster {{.Cluster}}.</p>
<ul>
<li><a href="metrics">Metrics</a> for Prometheus</li>
{{- if .FleetLock}}
<li>FleetLock for reboot agents on this host: <code>http://{{.FleetLock}}/</code></li>
{{- end}}
<li>Documentation on this host: <code>man 8 quorumd</code></li>
</ul>
</body>
</html>
`

// page gives the page. It is made once: nothing on it changes while quorumd runs.
func (a about) page() (http.Handler, error) {
	parsed, err := template.New("home").Parse(home)
	if err != nil {
		return nil, fmt.Errorf("cannot read the template of the page of links: %w", err)
	}
	var text bytes.Buffer
	if err := parsed.Execute(&text, a); err != nil {
		return nil, fmt.Errorf("cannot make the page of links: %w", err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(text.Bytes()) // one who has gone need not be told
	}), nil
}
