// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package page shows a status to people in a browser: one page without scripts, that loads nothing from anywhere and
// renews itself. It promises:
//
//   - It answers from memory: looking costs etcd and the disk nothing. The page is made at most once in a second,
//     however many look.
//   - Whatever stands in a record of etcd or in a name is shown as text, and cut where it is long.
//   - It stays small: of a large fleet it shows the members and those that need somebody, and counts the others.
package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the template
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/quorumd/quorumd/agent/control"
)

// Source is what is shown. Its methods answer from memory and wait for nothing.
type Source interface {
	ClusterState() control.Status
	// Fsyncs gives what the probe has measured lately, minute by minute, oldest first.
	Fsyncs() []control.FsyncMinute
}

// About is what the page says beside what its source tells.
type About struct {
	FleetLock string // where reboot agents of this host ask; empty when nobody listens for them
	Runbooks  string // the text of the runbooks
}

//go:embed page.html
var markup string

//go:embed page.css
var style string

// New gives what serves the page at / and the runbooks at /runbooks. It fails when the template does not fit the view,
// which a test would show.
func New(source Source, about About) (http.Handler, error) {
	parsed, err := template.New("page").Parse(markup)
	if err != nil {
		return nil, fmt.Errorf("cannot read the template of the page: %w", err)
	}
	sum := sha256.Sum256([]byte(style))
	policy := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
	made := &page{source: source, about: about, template: parsed}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		text, err := made.now()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		answer(w, "text/html; charset=utf-8", policy, text)
	})
	mux.HandleFunc("GET /runbooks", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, "text/plain; charset=utf-8", "default-src 'none'; frame-ancestors 'none'", []byte(about.Runbooks))
	})
	return mux, nil
}

// page is what was shown last.
type page struct {
	source   Source
	about    About
	template *template.Template

	mu   sync.Mutex
	text []byte
	at   time.Time
}

// now gives the page as it is, or was less than a second ago.
func (p *page) now() ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); p.text == nil || now.Sub(p.at) >= time.Second {
		var text bytes.Buffer
		if err := p.template.Execute(&text, viewOf(p.source.ClusterState(), p.source.Fsyncs(), p.about)); err != nil {
			return nil, fmt.Errorf("cannot make the page: %w", err)
		}
		p.text, p.at = text.Bytes(), now
	}
	return p.text, nil
}

func answer(w http.ResponseWriter, kind, policy string, text []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(text)))
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	_, _ = w.Write(text) // one who has gone need not be told
}
