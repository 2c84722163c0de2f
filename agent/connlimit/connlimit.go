// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package connlimit limits the resources of the agent that TCP clients can use.
//
// It promises:
//   - The number of open connections is limited, in total and per address. A connection over the limit is closed
//     immediately, without reading from it. All addresses of an IPv6 /64 count as one, because one machine may own
//     them.
//   - If networks are listed, no data is read from other addresses, and each network has reserved connections that the
//     others cannot use.
//   - The amount of unsent data on a connection is limited, too.
//   - Rejected connections are logged, at most once a minute.
//
// The HTTP server must limit how long a connection may be silent or slow. Server returns such a server.
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

// Limits define which addresses may connect, and how many connections they may have.
type Limits struct {
	Total      int
	PerAddress int
	Allow      []netip.Prefix // addresses that may connect; if empty, all may
	// Reserved is the number of connections reserved for each network of Allow. All reserved connections together are
	// at most half of Total: Listen reduces Reserved if necessary. An address belongs to the smallest network that
	// contains it.
	Reserved int
}

const (
	// sendBuffer is how much of an answer the kernel buffers for a slow reader, in bytes. A scrape of the metrics is
	// about 40 KiB.
	sendBuffer = 128 << 10
	// logEvery is the minimum interval between two log lines about rejected connections.
	logEvery = time.Minute
)

// Listener is a TCP listener that limits its connections.
type Listener struct {
	net.Listener
	limits Limits
	log    *slog.Logger

	mu       sync.Mutex
	open     map[netip.Prefix]int // by machine
	groups   map[netip.Prefix]int // open connections by network of Allow; without Allow, one entry
	all      int
	rejected int       // connections rejected since the last log line
	logged   time.Time // time of the last log line
}

// Listen listens on a TCP address.
func Listen(address string, limits Limits, log *slog.Logger) (*Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	if n := len(limits.Allow); n > 0 {
		limits.Reserved = min(limits.Reserved, limits.Total/2/n)
	}
	return &Listener{
		Listener: l, limits: limits, log: log, open: map[netip.Prefix]int{}, groups: map[netip.Prefix]int{},
	}, nil
}

// Accept waits for the next connection within the limits.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		in, why := l.acquire(origin(c))
		if why != "" {
			_ = c.Close()
			l.logRejected(c.RemoteAddr(), why)
			continue
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetWriteBuffer(sendBuffer) // if this fails, the kernel's own limit applies
		}
		return &conn{Conn: c, release: sync.OnceFunc(func() { l.release(in) })}, nil
	}
}

// origin returns the client's address, or the loopback address if this host connects to one of its own addresses.
func origin(c net.Conn) net.Addr {
	remote, remoteErr := netip.ParseAddrPort(c.RemoteAddr().String())
	local, localErr := netip.ParseAddrPort(c.LocalAddr().String())
	if remoteErr == nil && localErr == nil && remote.Addr() == local.Addr() {
		return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), remote.Port()))
	}
	return c.RemoteAddr()
}

// conn is a connection that releases its slot when it is closed.
type conn struct {
	net.Conn
	release func()
}

// Close closes the connection and releases its slot.
func (c *conn) Close() error {
	c.release()
	return c.Conn.Close()
}

// Allows reports whether an address may connect.
func (l *Listener) Allows(remote net.Addr) bool {
	peer, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return false
	}
	_, allowed := l.networkOf(peer.Addr().Unmap().WithZone(""))
	return allowed
}

// slot identifies the counters to which a connection is added.
type slot struct {
	machine netip.Prefix
	network netip.Prefix // smallest network of Limits.Allow that contains the address; zero without Allow
}

// acquire counts a connection from an address, or returns why it is rejected.
func (l *Listener) acquire(remote net.Addr) (in slot, why string) {
	peer, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return in, "its address is unknown"
	}
	addr := peer.Addr().Unmap().WithZone("")
	network, allowed := l.networkOf(addr)
	if !allowed {
		return in, "its address is not allowed"
	}
	in = slot{machineOf(addr), network}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.open[in.machine] >= l.limits.PerAddress:
		return in, fmt.Sprintf("%d connections from its address are open, the maximum", l.open[in.machine])
	case l.all >= l.limits.Total:
		return in, fmt.Sprintf("%d connections are open, the maximum", l.all)
	case l.groups[network] >= l.limits.Reserved && l.shared() >= l.limits.Total-len(l.limits.Allow)*l.limits.Reserved:
		return in, fmt.Sprintf("%d connections are open, and the remaining ones are reserved for other networks", l.all)
	}
	l.open[in.machine]++
	l.groups[network]++
	l.all++
	return in, ""
}

// shared returns the number of open connections beyond their network's reservation.
func (l *Listener) shared() int {
	n := 0
	for _, open := range l.groups {
		n += max(0, open-l.limits.Reserved)
	}
	return n
}

// networkOf returns the smallest allowed network that contains the address, and reports whether the address is allowed.
func (l *Listener) networkOf(addr netip.Addr) (network netip.Prefix, allowed bool) {
	for _, p := range l.limits.Allow {
		if p.Contains(addr) && (!allowed || p.Bits() > network.Bits()) {
			network, allowed = p, true
		}
	}
	return network, allowed || len(l.limits.Allow) == 0
}

// machineOf returns the block of addresses that one machine may own: the /64 of an IPv6 address, or a single IPv4
// address.
func machineOf(addr netip.Addr) netip.Prefix {
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	p, _ := addr.Prefix(bits) // a valid address has at least that many bits
	return p
}

func (l *Listener) release(in slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.groups[in.network]--; l.groups[in.network] == 0 {
		delete(l.groups, in.network)
	}
	if l.open[in.machine]--; l.open[in.machine] == 0 {
		delete(l.open, in.machine)
	}
}

func (l *Listener) logRejected(remote net.Addr, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rejected++
	if now := time.Now(); now.Sub(l.logged) >= logEvery {
		l.log.Warn("connections rejected", "listener", l.Addr().String(), "count", l.rejected, "last", remote.String(),
			"why", why)
		l.rejected, l.logged = 0, now
	}
}

// Times limit how long a client may take. For a later request on the same connection, Header and Read begin with the
// request.
type Times struct {
	Header time.Duration // from connecting to the end of a request's header
	Read   time.Duration // from connecting to the end of a request's body
	Write  time.Duration // from the end of the header to the end of the answer
	Idle   time.Duration // between two requests
}

// Server returns a server with these timeouts and a low limit on headers.
func Server(handler http.Handler, times Times, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: times.Header, ReadTimeout: times.Read, WriteTimeout: times.Write,
		IdleTimeout:    times.Idle,
		MaxHeaderBytes: 8 << 10,
		HTTP2:          &http.HTTP2Config{MaxConcurrentStreams: 4}, // each stream may wait for a slow reader
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}
