// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build realetcd

package model

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"
)

// wires are the network between the members of a cluster. Every member's peer URL leads to them, and they forward its
// requests unless the sender or the receiver is cut off. They recognise members by the ID in every request.
type wires struct {
	mu    sync.Mutex
	hosts map[uint64]int // by member ID
	apart [maxHosts]bool
	alone bool // requests without an ID are cut off
	open  map[*passing]bool
}

// passing is a request that is being forwarded, as long as it lasts: etcd's streams never end.
type passing struct {
	from, to int // from is -1 for a request without a member ID: a joining etcd asks for the list
	end      context.CancelFunc
}

// senderHeader names the member that sends a request.
const senderHeader = "X-Server-From"

// connect listens for one host and forwards to target.
func (n *wires) connect(t testing.TB, host int, listen, target string) {
	t.Helper()
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 8}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: target})
	proxy.FlushInterval, proxy.Transport = -1, transport
	proxy.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	server := &http.Server{
		ReadHeaderTimeout: time.Minute, ErrorLog: proxy.ErrorLog,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, end := context.WithCancel(r.Context())
			defer end()
			p := &passing{from: n.sender(r), to: host, end: end}
			if !n.begin(p) {
				panic(http.ErrAbortHandler)
			}
			defer n.ended(p)
			proxy.ServeHTTP(w, r.WithContext(ctx))
		}),
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Close()
		serving.Wait()
		transport.CloseIdleConnections()
	})
}

func (n *wires) sender(r *http.Request) int {
	id, err := strconv.ParseUint(r.Header.Get(senderHeader), 16, 64)
	n.mu.Lock()
	defer n.mu.Unlock()
	if host, known := n.hosts[id]; err == nil && known {
		return host
	}
	return -1
}

func (n *wires) begin(p *passing) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.apart[p.to] || (p.from < 0 && n.alone) || (p.from >= 0 && n.apart[p.from]) {
		return false
	}
	n.open[p] = true
	return true
}

func (n *wires) ended(p *passing) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.open, p)
}

// know records the host of a member.
func (n *wires) know(id uint64, host int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[id] = host
}

// set cuts a host off from all others in both directions, or heals it.
func (n *wires) set(host int, apart bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.apart[host] = apart
	for p := range n.open {
		if apart && (p.from == host || p.to == host) {
			p.end()
		}
	}
}

// join sets whether a joining etcd is cut off. It has no ID yet.
func (n *wires) join(apart bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.alone = apart
}
