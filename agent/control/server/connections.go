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

// peerListener is a listener that identifies its callers and limits their connections. Every user of the host can
// connect to the socket. Without the limits, one careless script could use up the daemon's file descriptors. Some
// connections are reserved for users who may change things, and some for root.
type peerListener struct {
	*net.UnixListener
	socket     string
	rules      rules
	maxPerUser int
	maxReaders int // limit for all users together who may only read
	maxNonRoot int // limit for all users together except root

	mu      sync.Mutex
	byUser  map[uint32]int // open connections
	readers int            // open connections of users who may only read
	nonRoot int            // open connections of all users but root
}

// peerConn is a connection and the process at its other end.
type peerConn struct {
	*net.UnixConn
	peer    peer
	release func()
}

// sendBuffer is the size of a connection's send buffer, in bytes. A client that does not read makes the kernel hold
// that much.
const sendBuffer = 64 << 10

// Accept returns the next connection within the limits. It answers a connection beyond them with an error document.
func (l *peerListener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		p, err := peerOf(c)
		if err != nil { // the peer has disconnected, or the kernel does not identify it
			_ = c.Close()
			continue
		}
		if !l.admit(p) {
			reject(c)
			continue
		}
		_ = c.SetWriteBuffer(sendBuffer) // if this fails, the kernel's own limit applies
		return &peerConn{UnixConn: c, peer: p, release: sync.OnceFunc(func() { l.release(p) })}, nil
	}
}

// Close removes the socket and stops listening.
func (l *peerListener) Close() error {
	_ = os.Remove(l.socket) // an error does not matter: the socket may have been removed with its directory
	return l.UnixListener.Close()
}

// Close closes the connection and no longer counts it.
func (c *peerConn) Close() error {
	c.release()
	return c.UnixConn.Close()
}

// admit counts a connection, unless it is over a limit.
func (l *peerListener) admit(p peer) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.byUser[p.uid] >= l.maxPerUser:
		return false
	case p.uid != 0 && l.nonRoot >= l.maxNonRoot:
		return false
	case !l.rules.mayChange(p) && l.readers >= l.maxReaders:
		return false
	}
	l.count(p, +1)
	return true
}

func (l *peerListener) release(p peer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count(p, -1)
}

func (l *peerListener) count(p peer, by int) {
	if l.byUser[p.uid] += by; l.byUser[p.uid] == 0 {
		delete(l.byUser, p.uid)
	}
	if p.uid != 0 {
		l.nonRoot += by
	}
	if !l.rules.mayChange(p) {
		l.readers += by
	}
}

// reject answers a connection without reading the request. The answer fits into an empty socket buffer, so the write
// does not block.
func reject(c *net.UnixConn) {
	defer func() { _ = c.Close() }()
	body, err := json.Marshal(control.ErrorDocument{Error: errBusy()})
	if err != nil || c.SetDeadline(time.Now().Add(time.Second)) != nil {
		return
	}
	fmt.Fprintf(c,
		"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nConnection: close\r\nRetry-After: %d\r\n"+
			"Content-Length: %d\r\n\r\n%s",
		http.StatusServiceUnavailable, http.StatusText(http.StatusServiceUnavailable), retryAfter, len(body), body)
}

func errBusy() *control.Error {
	return &control.Error{
		Status: http.StatusServiceUnavailable, Code: control.CodeBusy,
		Message: "cannot serve the request: too many at once", Hint: "try again in a moment",
	}
}
