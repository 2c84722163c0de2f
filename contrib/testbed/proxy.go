// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"
)

// Faults are the faults that a Proxy injects into its traffic. The zero value passes everything through.
type Faults struct {
	// Refuse refuses new connections, as a host does if nothing listens on the port. Open connections stay; see Reset.
	Refuse bool
	// HoldRequests stops the bytes to the target, and HoldResponses the bytes from the target. Connections stay open,
	// and new ones are accepted but get no data. Held bytes arrive when the fault ends, late and in order, as TCP would
	// deliver them after a cut. The end of a connection is held as well.
	HoldRequests  bool
	HoldResponses bool
	// Delay is added to the latency of each direction.
	Delay time.Duration
	// Rate limits the bytes per second of each connection, in each direction. 0 means no limit.
	Rate int
}

// Cut returns the faults of a network that is down in both directions.
func Cut() Faults { return Faults{HoldRequests: true, HoldResponses: true} }

// Proxy relays TCP connections to a target, with faults that can be changed at any time.
//
// etcd's own test proxy (go.etcd.io/etcd/pkg/v3/proxy) does not fit: it listens on every address, its Close waits until
// the peers close their connections, and bytes that it drops are missing in the middle of the stream.
type Proxy struct {
	addr     netip.AddrPort
	target   string
	reserved *os.File // keeps the port reserved while the proxy refuses connections
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu       sync.Mutex
	faults   Faults
	changed  chan struct{} // closed and replaced when the faults change
	listener net.Listener  // nil while the proxy refuses connections
	links    map[*link]bool
	err      error // why the proxy could not listen
}

// StartProxy listens on an IPv4 address, such as "127.0.0.1:0", and relays connections to target, "host:port".
func StartProxy(listen, target string) (*Proxy, error) {
	addr, err := netip.ParseAddrPort(listen)
	if err != nil {
		return nil, fmt.Errorf("cannot start a proxy: %w", err)
	}
	p := &Proxy{target: target, changed: make(chan struct{}), links: map[*link]bool{}}
	if p.reserved, p.addr, err = reserve(addr); err != nil {
		return nil, fmt.Errorf("cannot start a proxy: %w", err)
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.Set(Faults{})
	if p.err != nil {
		return nil, p.Close()
	}
	return p, nil
}

// NewProxy is like StartProxy, for tests: it listens on a free port of 127.0.0.1, and is closed when the test ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	p, err := StartProxy("127.0.0.1:0", target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// Addr returns the proxy's address, "host:port".
func (p *Proxy) Addr() string { return p.addr.String() }

// Set replaces the faults. They apply to all bytes that arrive from now on and to all held bytes.
func (p *Proxy) Set(f Faults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = f
	close(p.changed)
	p.changed = make(chan struct{})
	switch {
	case p.ctx.Err() != nil:
	case f.Refuse && p.listener != nil:
		p.listener.Close()
		p.listener = nil
	case !f.Refuse && p.listener == nil:
		listener, err := net.Listen("tcp", p.addr.String())
		if err != nil {
			p.err = fmt.Errorf("cannot listen on %s: %w", p.addr, err)
			return
		}
		p.listener = listener
		p.running.Go(func() { p.accept(listener) })
	}
}

// Reset ends every open connection with a TCP reset on both sides. Held bytes are lost.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.abort()
	}
}

// Close stops listening, resets open connections, and returns when all of the proxy's goroutines have ended. It returns
// an error if the proxy could not listen again after Refuse, which only a shortage of resources can cause. Close may be
// called more than once.
func (p *Proxy) Close() error {
	p.cancel()
	p.Set(Faults{})
	p.mu.Lock()
	if p.listener != nil {
		p.listener.Close()
	}
	p.mu.Unlock()
	p.Reset()
	p.running.Wait()
	p.reserved.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// current returns the faults and a channel that is closed when they change.
func (p *Proxy) current() (Faults, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faults, p.changed
}

func (p *Proxy) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(conn.(*net.TCPConn)) })
	}
}

// serve runs one connection from its dial to its end.
func (p *Proxy) serve(client *net.TCPConn) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(p.ctx, "tcp", p.target)
	if err != nil {
		reset(client)
		return
	}
	l := &link{proxy: p, client: client, server: conn.(*net.TCPConn)}
	l.ctx, l.cancel = context.WithCancel(p.ctx)
	defer l.cancel()
	p.mu.Lock()
	p.links[l] = true
	p.mu.Unlock()
	if p.ctx.Err() != nil { // Close may have run before the link was registered
		l.abort()
	}
	var pumps sync.WaitGroup
	pumps.Go(func() { l.pump(l.server, l.client, func(f Faults) bool { return f.HoldRequests }) })
	pumps.Go(func() { l.pump(l.client, l.server, func(f Faults) bool { return f.HoldResponses }) })
	pumps.Wait()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
	l.client.Close()
	l.server.Close()
}
