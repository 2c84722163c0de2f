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

// peerProxies is the network between the members of a cluster. It listens on every member's peer URL, and forwards
// requests unless the sender or the receiver is isolated. It identifies the sender by the ID in the request.
type peerProxies struct {
	mu              sync.Mutex
	hosts           map[uint64]int // by member ID
	isolated        [maxHosts]bool
	joiningIsolated bool // requests without an ID are not forwarded
	open            map[*forwardedRequest]bool
}

// forwardedRequest is a request in progress. etcd's streams never end.
type forwardedRequest struct {
	from, to int // from is -1 for a request without a member ID, by a joining etcd
	cancel   context.CancelFunc
}

// senderHeader is the header with the ID of the member that sends a request.
const senderHeader = "X-Server-From"

// connect listens for one host and forwards to target.
func (n *peerProxies) connect(t testing.TB, host int, listen, target string) {
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
			p := &forwardedRequest{from: n.sender(r), to: host, cancel: end}
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

func (n *peerProxies) sender(r *http.Request) int {
	id, err := strconv.ParseUint(r.Header.Get(senderHeader), 16, 64)
	n.mu.Lock()
	defer n.mu.Unlock()
	if host, known := n.hosts[id]; err == nil && known {
		return host
	}
	return -1
}

func (n *peerProxies) begin(p *forwardedRequest) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.isolated[p.to] || (p.from < 0 && n.joiningIsolated) || (p.from >= 0 && n.isolated[p.from]) {
		return false
	}
	n.open[p] = true
	return true
}

func (n *peerProxies) ended(p *forwardedRequest) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.open, p)
}

// setHost records the host of a member.
func (n *peerProxies) setHost(id uint64, host int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[id] = host
}

// setIsolated isolates a host from all others in both directions, or reconnects it.
func (n *peerProxies) setIsolated(host int, apart bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.isolated[host] = apart
	for p := range n.open {
		if apart && (p.from == host || p.to == host) {
			p.cancel()
		}
	}
}

// setJoiningIsolated isolates a joining etcd, which has no ID yet, or reconnects it.
func (n *peerProxies) setJoiningIsolated(apart bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.joiningIsolated = apart
}
