// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package gate bounds what those who connect over TCP can take of the agent.
//
// It promises:
//   - At most so many connections are open, in all and from one address. One more is closed at once, unread. An IPv6
//     address counts with all of its /64, which is what one machine has.
//   - Where a list of networks is given, nobody else is read from.
//   - What waits to be sent on a connection is bounded, too.
//   - That somebody was turned away is told, at most once in a minute.
//
// How long a connection may be silent or slow is for the server behind it: Server gives the times to one.
package gate

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Limits say who may connect, and how often at once.
type Limits struct {
	InAll      int
	PerAddress int
	Allow      []netip.Prefix // nobody else; empty: everyone
}

const (
	// sendBuffer is how much of an answer the kernel keeps for a reader who is slow, in bytes. A scrape has about 40
	// KiB.
	sendBuffer = 128 << 10
	// tellEvery is how often it is told that somebody was turned away.
	tellEvery = time.Minute
)

// Gate is a listener whose connections are counted.
type Gate struct {
	net.Listener
	limits Limits
	log    *slog.Logger

	mu     sync.Mutex
	open   map[netip.Prefix]int
	all    int
	turned int       // away since it was told
	told   time.Time // when
}

// Listen takes a TCP address.
func Listen(address string, limits Limits, log *slog.Logger) (*Gate, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return &Gate{Listener: l, limits: limits, log: log, open: map[netip.Prefix]int{}}, nil
}

// Accept waits for the next connection that is within the bounds.
func (g *Gate) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from, why := g.enter(c.RemoteAddr())
		if why != "" {
			_ = c.Close()
			g.tell(c.RemoteAddr(), why)
			continue
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetWriteBuffer(sendBuffer) // if it cannot be set, the kernel's own bound holds
		}
		return &conn{Conn: c, leave: sync.OnceFunc(func() { g.leave(from) })}, nil
	}
}

// conn is a connection that gives its place back.
type conn struct {
	net.Conn
	leave func()
}

// Close closes the connection and gives its place back.
func (c *conn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// enter counts a connection from an address, or says why it may not be.
func (g *Gate) enter(remote net.Addr) (from netip.Prefix, why string) {
	peer, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return from, "its address is unknown"
	}
	addr := peer.Addr().Unmap().WithZone("")
	if len(g.limits.Allow) > 0 && !slices.ContainsFunc(g.limits.Allow, func(p netip.Prefix) bool {
		return p.Contains(addr)
	}) {
		return from, "its address is not allowed"
	}
	from = machineOf(addr)
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.open[from] >= g.limits.PerAddress:
		return from, fmt.Sprintf("%d connections from its address are open, as many as may be", g.open[from])
	case g.all >= g.limits.InAll:
		return from, fmt.Sprintf("%d connections are open, as many as may be", g.all)
	}
	g.open[from]++
	g.all++
	return from, ""
}

// machineOf gives the addresses that one machine may have all of.
func machineOf(addr netip.Addr) netip.Prefix {
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	p, _ := addr.Prefix(bits) // a valid address has that many bits
	return p
}

func (g *Gate) leave(from netip.Prefix) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all--
	if g.open[from]--; g.open[from] == 0 {
		delete(g.open, from)
	}
}

func (g *Gate) tell(remote net.Addr, why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.turned++
	if now := time.Now(); now.Sub(g.told) >= tellEvery {
		g.log.Warn("connections turned away", "listener", g.Addr().String(), "count", g.turned, "last", remote.String(),
			"why", why)
		g.turned, g.told = 0, now
	}
}

// Times are how long a caller may take.
type Times struct {
	Header time.Duration // from connecting to the end of a request's header
	Read   time.Duration // to the end of its body
	Write  time.Duration // from the end of the header to the end of the answer
	Idle   time.Duration // between two requests
}

// Server gives a server that keeps these times, and small headers.
func Server(handler http.Handler, times Times, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: times.Header, ReadTimeout: times.Read, WriteTimeout: times.Write,
		IdleTimeout:    times.Idle,
		MaxHeaderBytes: 8 << 10,
		HTTP2:          &http.HTTP2Config{MaxConcurrentStreams: 4}, // each may wait for a slow reader
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}
