// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package page serves the status page: one HTML page without scripts, which loads no other resource and reloads
// itself. It promises:
//
//   - It answers from memory: requests cause no disk I/O, and at most one read of the history from etcd every ten
//     seconds. If etcd hangs, a request waits at most 200 ms for that read. The page is rendered at most once per
//     second, regardless of the number of viewers.
//   - Records from etcd, the history and names are shown as text, and truncated if they are long.
//   - It stays small: in a large fleet it lists the members and the unhealthy hosts, and counts the others.
package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed" // for the page's template
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/quorumd/quorumd/agent/control"
)

// Source is the agent whose status the page shows. Its methods answer from memory and do not block, except History.
type Source interface {
	ClusterState() control.Status
	// History returns the newest limit lines, oldest first. If the error is
	// control.ErrNotNewest, the lines are from this host only.
	History(ctx context.Context, limit int) ([]control.HistoryLine, error)
	// Fsyncs returns the recent measurements of the probe, one entry per minute, oldest first.
	Fsyncs() []control.FsyncMinute
}

// About is the content of the page that does not come from its source.
type About struct {
	FleetLock string // URL for reboot agents on this host; empty if none
	Runbooks  string // the runbooks as Markdown
	// ByCode maps codes to the names of their runbooks.
	ByCode map[string]string
}

//go:embed page.html
var markup string

//go:embed page.css
var style string

// New returns a handler that serves the page at /, all runbooks at /runbooks and a single runbook at /runbooks/NAME. It
// fails only if the template is invalid, which the tests would reveal.
func New(source Source, about About) (http.Handler, error) {
	parsed, err := template.New("page").Funcs(template.FuncMap{"parts": partsOf}).Parse(markup)
	if err != nil {
		return nil, fmt.Errorf("cannot parse the template of the page: %w", err)
	}
	sum := sha256.Sum256([]byte(style))
	policy := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
	made := &page{source: source, history: historyReader{source: source}, about: about, template: parsed}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		text, err := made.now(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		answer(w, "text/html; charset=utf-8", policy, text)
	})
	mux.HandleFunc("GET /runbooks", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, "text/plain; charset=utf-8", "default-src 'none'; frame-ancestors 'none'", []byte(about.Runbooks))
	})
	mux.HandleFunc("GET /runbooks/{name}", func(w http.ResponseWriter, r *http.Request) {
		text := about.section(r.PathValue("name"))
		if text == "" {
			http.NotFound(w, r)
			return
		}
		answer(w, "text/plain; charset=utf-8", "default-src 'none'; frame-ancestors 'none'", []byte(text))
	})
	return mux, nil
}

// page caches the last rendered page.
type page struct {
	source   Source
	about    About
	template *template.Template

	mu      sync.Mutex
	history historyReader
	text    []byte
	at      time.Time
}

// now returns the page, rendered at most one second ago.
func (p *page) now(ctx context.Context) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); p.text == nil || now.Sub(p.at) >= time.Second {
		v := viewOf(p.source.ClusterState(), p.source.Fsyncs(), p.about)
		v.Events, v.EventNote = eventsOf(p.history.current(ctx), p.about, time.Now())
		var text bytes.Buffer
		if err := p.template.Execute(&text, v); err != nil {
			return nil, fmt.Errorf("cannot render the page: %w", err)
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
	_, _ = w.Write(text) // the client may have disconnected
}
