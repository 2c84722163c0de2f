// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// guard is a listener that knows who is calling and gives every user a bounded number of
// connections. The socket is open to everyone on the host; without the bound, one careless
// script could use up the daemon's files.
type guard struct {
	*net.UnixListener
	perUser  int
	everyone int // all users but root together

	mu   sync.Mutex
	open map[uint32]int
	all  int // without root's
}

// peerConn is a connection with the process at its other end.
type peerConn struct {
	*net.UnixConn
	peer  peer
	leave func()
}

// Accept waits for the next connection that is within the bounds. One over them gets an error
// document at once.
func (g *guard) Accept() (net.Conn, error) {
	for {
		c, err := g.AcceptUnix()
		if err != nil {
			return nil, err
		}
		p, err := peerOf(c)
		if err != nil { // it has gone already, or is nobody we could permit anything
			_ = c.Close()
			continue
		}
		if !g.enter(p.uid) {
			turnAway(c)
			continue
		}
		return &peerConn{UnixConn: c, peer: p, leave: sync.OnceFunc(func() { g.leave(p.uid) })}, nil
	}
}

// Close closes the connection and gives its place back.
func (c *peerConn) Close() error {
	c.leave()
	return c.UnixConn.Close()
}

func (g *guard) enter(uid uint32) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[uid] >= g.perUser || uid != 0 && g.all >= g.everyone {
		return false
	}
	g.count(uid, +1)
	return true
}

func (g *guard) leave(uid uint32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count(uid, -1)
}

func (g *guard) count(uid uint32, by int) {
	if g.open[uid] += by; g.open[uid] == 0 {
		delete(g.open, uid)
	}
	if uid != 0 {
		g.all += by
	}
}

// turnAway answers without reading. The answer fits into an empty socket buffer, so it waits for nobody.
func turnAway(c *net.UnixConn) {
	defer func() { _ = c.Close() }()
	body, err := json.Marshal(errorDocument{busy()})
	if err != nil || c.SetDeadline(time.Now().Add(time.Second)) != nil {
		return
	}
	fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		http.StatusServiceUnavailable, http.StatusText(http.StatusServiceUnavailable), len(body), body)
}

func busy() *Error {
	return &Error{
		Status: http.StatusServiceUnavailable, Code: CodeBusy,
		Message: "cannot serve the request: too many at once", Hint: "try again in a moment",
	}
}
