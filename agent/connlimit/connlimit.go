// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package connlimit bounds how many of the agent's resources TCP clients can use.
//
// It promises:
//   - The number of open connections is bounded, in total and per address. One more is closed at once, unread. An IPv6
//     address counts with its whole /64, which one machine can have.
//   - If a list of networks is given, no data is read from other addresses, and each network has reserved connections
//     that the others cannot use.
//   - The data waiting to be sent on a connection is bounded, too.
//   - Refused connections are logged, at most once a minute.
//
// The server behind it has to bound how long a connection may be silent or slow: Server returns one that does.
package connlimit

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Limits say which addresses may connect, and how many connections they may have.
type Limits struct {
	InAll      int
	PerAddress int
	Allow      []netip.Prefix // only these addresses may connect; empty: all
	// Reserved is how many connections are reserved for each network of Allow, together at most half of InAll. An
	// address belongs to the smallest network that contains it.
	Reserved int
}

const (
	// sendBuffer is how much of an answer the kernel buffers for a slow reader, in bytes. A scrape has about 40 KiB.
	sendBuffer = 128 << 10
	// tellEvery is how often refused connections are logged.
	tellEvery = time.Minute
)

// Gate is a listener that counts its connections.
type Gate struct {
	net.Listener
	limits Limits
	log    *slog.Logger

	mu     sync.Mutex
	open   map[netip.Prefix]int // by machine
	groups map[netip.Prefix]int // by network of Allow; one group without Allow
	all    int
	turned int       // refused since the last log line
	logged time.Time // time of that line
}

// Listen listens on a TCP address.
func Listen(address string, limits Limits, log *slog.Logger) (*Gate, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	if n := len(limits.Allow); n > 0 {
		limits.Reserved = min(limits.Reserved, limits.InAll/2/n)
	}
	return &Gate{
		Listener: l, limits: limits, log: log, open: map[netip.Prefix]int{}, groups: map[netip.Prefix]int{},
	}, nil
}

// Accept waits for the next connection within the limits.
func (g *Gate) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		in, why := g.enter(origin(c))
		if why != "" {
			_ = c.Close()
			g.tell(c.RemoteAddr(), why)
			continue
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetWriteBuffer(sendBuffer) // on an error the kernel's own limit applies
		}
		return &conn{Conn: c, leave: sync.OnceFunc(func() { g.leave(in) })}, nil
	}
}

// origin returns where a connection comes from: the loopback address if it comes from this host, through whichever of
// its addresses.
func origin(c net.Conn) net.Addr {
	remote, remoteErr := netip.ParseAddrPort(c.RemoteAddr().String())
	local, localErr := netip.ParseAddrPort(c.LocalAddr().String())
	if remoteErr == nil && localErr == nil && remote.Addr() == local.Addr() {
		return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), remote.Port()))
	}
	return c.RemoteAddr()
}

// conn is a connection that frees its place.
type conn struct {
	net.Conn
	leave func()
}

// Close closes the connection and frees its place.
func (c *conn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// Allows reports whether data from an address is read at all.
func (g *Gate) Allows(remote net.Addr) bool {
	peer, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return false
	}
	_, allowed := g.networkOf(peer.Addr().Unmap().WithZone(""))
	return allowed
}

// place is what a connection counts for.
type place struct {
	machine netip.Prefix
	network netip.Prefix // of Limits.Allow
}

// enter counts a connection from an address, or returns why it is refused.
func (g *Gate) enter(remote net.Addr) (in place, why string) {
	peer, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return in, "its address is unknown"
	}
	addr := peer.Addr().Unmap().WithZone("")
	network, allowed := g.networkOf(addr)
	if !allowed {
		return in, "its address is not allowed"
	}
	in = place{machineOf(addr), network}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.open[in.machine] >= g.limits.PerAddress:
		return in, fmt.Sprintf("%d connections from its address are open, the maximum", g.open[in.machine])
	case g.all >= g.limits.InAll:
		return in, fmt.Sprintf("%d connections are open, the maximum", g.all)
	case g.groups[network] >= g.limits.Reserved && g.shared() >= g.limits.InAll-len(g.limits.Allow)*g.limits.Reserved:
		return in, fmt.Sprintf("%d connections are open, and the remaining ones are reserved for other networks", g.all)
	}
	g.open[in.machine]++
	g.groups[network]++
	g.all++
	return in, ""
}

// shared returns how many open connections are beyond their network's reservation.
func (g *Gate) shared() int {
	n := 0
	for _, open := range g.groups {
		n += max(0, open-g.limits.Reserved)
	}
	return n
}

// networkOf returns the smallest allowed network of an address, and whether it is allowed at all.
func (g *Gate) networkOf(addr netip.Addr) (network netip.Prefix, allowed bool) {
	for _, p := range g.limits.Allow {
		if p.Contains(addr) && (!allowed || p.Bits() > network.Bits()) {
			network, allowed = p, true
		}
	}
	return network, allowed || len(g.limits.Allow) == 0
}

// machineOf returns the addresses that one machine may own.
func machineOf(addr netip.Addr) netip.Prefix {
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	p, _ := addr.Prefix(bits) // a valid address has that many bits
	return p
}

func (g *Gate) leave(in place) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all--
	if g.groups[in.network]--; g.groups[in.network] == 0 {
		delete(g.groups, in.network)
	}
	if g.open[in.machine]--; g.open[in.machine] == 0 {
		delete(g.open, in.machine)
	}
}

func (g *Gate) tell(remote net.Addr, why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.turned++
	if now := time.Now(); now.Sub(g.logged) >= tellEvery {
		g.log.Warn("connections rejected", "listener", g.Addr().String(), "count", g.turned, "last", remote.String(),
			"why", why)
		g.turned, g.logged = 0, now
	}
}

// Times bound how long a client may take.
type Times struct {
	Header time.Duration // from connecting to the end of a request's header
	Read   time.Duration // to the end of its body
	Write  time.Duration // from the end of the header to the end of the answer
	Idle   time.Duration // between two requests
}

// Server returns a server with these timeouts and small headers.
func Server(handler http.Handler, times Times, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: times.Header, ReadTimeout: times.Read, WriteTimeout: times.Write,
		IdleTimeout:    times.Idle,
		MaxHeaderBytes: 8 << 10,
		HTTP2:          &http.HTTP2Config{MaxConcurrentStreams: 4}, // each may wait for a slow reader
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}
