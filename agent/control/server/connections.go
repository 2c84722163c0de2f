// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/quorumd/quorumd/agent/control"
)

// guard is a listener that knows its callers and limits the connections of each user. The socket is open to everyone on
// the host. Without the limit, one careless script could use up the daemon's file descriptors. Users who may only read
// leave connections for those who may change things, and these leave some for root.
type guard struct {
	*net.UnixListener
	socket    string
	rules     rules
	perUser   int
	strangers int // all users who may only read
	everyone  int // all users but root

	mu   sync.Mutex
	open map[uint32]int
	look int // of users who may only read
	all  int // without root's
}

// peerConn is a connection with its peer process.
type peerConn struct {
	*net.UnixConn
	peer  peer
	leave func()
}

// sendBuffer is how many bytes of an answer the kernel buffers for a client that does not read.
const sendBuffer = 64 << 10

// Accept waits for the next connection within the limits. A connection over them gets an error document at once.
func (g *guard) Accept() (net.Conn, error) {
	for {
		c, err := g.AcceptUnix()
		if err != nil {
			return nil, err
		}
		p, err := peerOf(c)
		if err != nil { // the peer has disconnected, or has no identity to permit anything to
			_ = c.Close()
			continue
		}
		if !g.enter(p) {
			turnAway(c)
			continue
		}
		_ = c.SetWriteBuffer(sendBuffer) // if it cannot be set, the kernel's own limit applies
		return &peerConn{UnixConn: c, peer: p, leave: sync.OnceFunc(func() { g.leave(p) })}, nil
	}
}

// Close removes the socket.
func (g *guard) Close() error {
	_ = os.Remove(g.socket) // it may have been removed with its directory
	return g.UnixListener.Close()
}

// Close closes the connection and frees its place.
func (c *peerConn) Close() error {
	c.leave()
	return c.UnixConn.Close()
}

func (g *guard) enter(p peer) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.open[p.uid] >= g.perUser:
		return false
	case p.uid != 0 && g.all >= g.everyone:
		return false
	case !g.rules.mayChange(p) && g.look >= g.strangers:
		return false
	}
	g.count(p, +1)
	return true
}

func (g *guard) leave(p peer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count(p, -1)
}

func (g *guard) count(p peer, by int) {
	if g.open[p.uid] += by; g.open[p.uid] == 0 {
		delete(g.open, p.uid)
	}
	if p.uid != 0 {
		g.all += by
	}
	if !g.rules.mayChange(p) {
		g.look += by
	}
}

// turnAway answers without reading. The answer fits into an empty socket buffer, so the write does not block.
func turnAway(c *net.UnixConn) {
	defer func() { _ = c.Close() }()
	body, err := json.Marshal(control.ErrorDocument{Error: busy()})
	if err != nil || c.SetDeadline(time.Now().Add(time.Second)) != nil {
		return
	}
	fmt.Fprintf(c,
		"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nConnection: close\r\nRetry-After: %d\r\n"+
			"Content-Length: %d\r\n\r\n%s",
		http.StatusServiceUnavailable, http.StatusText(http.StatusServiceUnavailable), retryAfter, len(body), body)
}

func busy() *control.Error {
	return &control.Error{
		Status: http.StatusServiceUnavailable, Code: control.CodeBusy,
		Message: "cannot serve the request: too many at once", Hint: "try again in a moment",
	}
}
