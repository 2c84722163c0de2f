// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// front is a proxy in front of the client URL of a host's etcd. All agents connect from the same address here, so the
// front looks up which agent opened each connection, and relays the connection through that agent's proxy. Thus a test
// can cut off a single agent.
type front struct {
	w        *world
	listener net.Listener
	running  sync.WaitGroup
	proxies  map[*host]*testbed.Proxy // nil is the key for all other clients

	mu   sync.Mutex
	open map[net.Conn]bool // nil after the front has closed
}

func newFront(of *host) *front {
	f := &front{w: of.w, proxies: map[*host]*testbed.Proxy{}, open: map[net.Conn]bool{}}
	for _, h := range append(slices.Clone(of.w.hosts), nil) {
		f.proxies[h] = testbed.NewProxy(of.w.t, address(of.Options.ListenClientURL))
	}
	return f
}

// openFront makes the front, if there is one, listen until the test ends.
func (h *host) openFront() {
	h.w.t.Helper()
	if h.front == nil {
		return
	}
	listener, err := net.Listen("tcp", address(h.Options.ClientURL))
	if err != nil {
		h.w.t.Fatal(err)
	}
	h.front.listener = listener
	h.front.running.Go(h.front.accept)
	h.w.t.Cleanup(h.front.close)
}

func (f *front) accept() {
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.running.Go(func() { f.serve(conn) })
	}
}

// serve relays a client's connection through the proxy of the agent that opened it.
func (f *front) serve(client net.Conn) {
	defer f.drop(client)
	server, err := net.Dial("tcp", f.proxies[f.w.opener(client)].Addr())
	if err != nil {
		return
	}
	defer f.drop(server)
	if !f.keep(client, server) {
		return
	}
	ended := make(chan struct{}, 2)
	carry := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // the end of either copy ends both
		ended <- struct{}{}
	}
	f.running.Go(func() { carry(server, client) })
	f.running.Go(func() { carry(client, server) })
	<-ended
}

// keep records connections to close when the front closes; it returns false if the front has already closed.
func (f *front) keep(conns ...net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == nil {
		return false
	}
	for _, c := range conns {
		f.open[c] = true
	}
	return true
}

func (f *front) drop(conn net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, conn)
	_ = conn.Close()
}

func (f *front) close() {
	_ = f.listener.Close()
	f.mu.Lock()
	for c := range f.open {
		_ = c.Close()
	}
	f.open = nil
	f.mu.Unlock()
	f.running.Wait()
}

// opener returns the host whose agent opened a connection, or nil.
func (w *world) opener(conn net.Conn) *host {
	socket, err := socketOf(conn.RemoteAddr().String(), conn.LocalAddr().String())
	if err != nil {
		return nil
	}
	for _, h := range w.hosts {
		names, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", h.AgentPID()))
		if err != nil {
			continue
		}
		for _, name := range names {
			if link, err := os.Readlink(name); err == nil && link == socket {
				return h
			}
		}
	}
	return nil
}

// socketOf returns the name of a connection's socket in a process's fd directory; see proc_net_tcp(5).
func socketOf(local, remote string) (string, error) {
	table, err := os.Open("/proc/net/tcp")
	if err != nil {
		return "", err
	}
	defer table.Close()
	want := []string{inTable(local), inTable(remote)}
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		if f := strings.Fields(lines.Text()); len(f) > 9 && slices.Equal(f[1:3], want) {
			return "socket:[" + f[9] + "]", nil
		}
	}
	return "", fmt.Errorf("no connection from %s to %s", local, remote)
}

// inTable formats an IPv4 address and port as in /proc/net/tcp.
func inTable(address string) string {
	a := netip.MustParseAddrPort(address)
	ip := a.Addr().As4()
	return fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], a.Port())
}

// cutOff blocks, or allows again, all traffic between this host's agent and the etcds of the other hosts.
func (h *host) cutOff(yes bool) {
	faults := testbed.Faults{}
	if yes {
		faults = testbed.Cut()
	}
	for _, other := range h.w.hosts {
		if other != h {
			other.front.proxies[h].Set(faults)
		}
	}
}
