// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// answer has the size of a scrape of a large fleet.
var answer = bytes.Repeat([]byte("quorumd_some_metric{label=\"value\"} 1\n"), 8192)

// serving starts a server with these limits on 127.0.0.1.
func serving(t *testing.T, limits Limits, times Times, log io.Writer) (*Listener, string) {
	t.Helper()
	return servingAt(t, "127.0.0.1:0", limits, times, log)
}

func servingAt(t *testing.T, address string, limits Limits, times Times, log io.Writer) (*Listener, string) {
	t.Helper()
	logger := slog.New(slog.NewTextHandler(log, nil))
	g, err := Listen(address, limits, logger)
	if err != nil {
		t.Fatal(err)
	}
	srv := Server(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(answer)
	}), times, logger)
	var ended sync.WaitGroup
	ended.Go(func() { _ = srv.Serve(g) })
	t.Cleanup(func() { srv.Close(); ended.Wait() })
	return g, g.Addr().String()
}

func longTimes() Times {
	return Times{Header: time.Minute, Read: time.Minute, Write: time.Minute, Idle: time.Minute}
}

// dial connects from a loopback address, with the small receive buffer of a slow reader.
func dial(t *testing.T, from, to string) net.Conn {
	t.Helper()
	d := net.Dialer{
		LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)},
		Control: func(_, _ string, raw syscall.RawConn) error {
			return raw.Control(func(fd uintptr) {
				_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096)
			})
		},
	}
	c, err := d.DialContext(t.Context(), "tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// scrape sends one request from an address, and returns an error unless it receives the whole answer.
func scrape(ctx context.Context, from, to string) error {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	transport := &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+to+"/metrics", nil)
	if err != nil {
		return err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err == nil && !bytes.Equal(got, answer) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// closed reports whether the server has closed the connection without sending data.
func closed(t *testing.T, c net.Conn) bool {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	n, err := c.Read(make([]byte, 1))
	return n == 0 && err != nil && !os.IsTimeout(err)
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("timed out: %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// TestThousandsOfIdleAndSlowCallersCostLittle measures the memory of the whole process, so it runs alone.
func TestThousandsOfIdleAndSlowCallersCostLittle(t *testing.T) { //nolint:paralleltest // it measures memory
	const idle, slow, most = 2000, 300, 8 << 20
	g, address := serving(t, Limits{Total: 128, PerAddress: 16}, longTimes(), io.Discard)
	before := inUse()
	for range idle {
		dial(t, "127.0.0.2", address)
	}
	for range slow {
		c := dial(t, "127.0.0.3", address)
		// The server may have closed the connection already.
		_, _ = io.WriteString(c, strings.Repeat("GET /metrics HTTP/1.1\r\nHost: q\r\n\r\n", 8))
	}
	if err := scrape(t.Context(), "127.0.0.1", address); err != nil {
		t.Errorf("a scrape from another address: %v", err)
	}
	until(t, "the number of connections is within the limits", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.all <= 32 && len(g.open) <= 2
	})
	if after := inUse(); after > before+most {
		t.Errorf("%d idle and %d slow callers cost %d KiB, want at most %d", idle, slow, (after-before)>>10, most>>10)
	} else {
		t.Logf("%d idle and %d slow callers cost %d KiB", idle, slow, (max(after, before)-before)>>10)
	}
}

// inUse returns the memory in use by the process, including the test's own ends of the connections.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

func TestConnectionOverTheLimitIsClosedAndReleasedSlotsAreReused(t *testing.T) {
	t.Parallel()
	var log logged
	_, address := serving(t, Limits{Total: 3, PerAddress: 2}, longTimes(), &log)
	held := func(from string) net.Conn { // the answer proves that the connection was accepted
		c := dial(t, from, address)
		if _, err := io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: q\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
			t.Fatal(err)
		}
		return c
	}
	one := held("127.0.0.2")
	held("127.0.0.2")
	if !closed(t, dial(t, "127.0.0.2", address)) {
		t.Error("the third connection from an address is not closed")
	}
	held("127.0.0.3")
	if !closed(t, dial(t, "127.0.0.4", address)) {
		t.Error("the fourth connection is not closed")
	}
	one.Close()
	until(t, "the slot is free again", func() bool { return scrape(t.Context(), "127.0.0.4", address) == nil })
	if said := log.String(); strings.Count(said, "connections rejected") != 1 ||
		!strings.Contains(said, "2 connections from its address are open") {
		t.Errorf("log:\n%s", said)
	}
}

func TestDataIsReadFromAllowedAddressesOnly(t *testing.T) {
	t.Parallel()
	allow := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("127.0.0.2/32")}
	_, address := serving(t, Limits{Total: 8, PerAddress: 8, Allow: allow}, longTimes(), io.Discard)
	if err := scrape(t.Context(), "127.0.0.2", address); err != nil {
		t.Errorf("an allowed address: %v", err)
	}
	if !closed(t, dial(t, "127.0.0.1", address)) {
		t.Error("a connection from another address is not closed")
	}
}

func TestSilentOrSlowClientIsDisconnected(t *testing.T) {
	t.Parallel()
	const short = 100 * time.Millisecond
	request := "GET /metrics HTTP/1.1\r\nHost: q\r\n\r\n"
	for name, c := range map[string]struct {
		sends string
		times func(*Times)
	}{
		"silent":            {"", func(ts *Times) { ts.Header = short }},
		"within the header": {"GET /met", func(ts *Times) { ts.Header = short }},
		"within the body": {"POST / HTTP/1.1\r\nHost: q\r\nContent-Length: 9\r\n\r\n1", func(ts *Times) {
			ts.Read = short
		}},
		"after an answer":        {request, func(ts *Times) { ts.Idle = short }},
		"reading none of it":     {strings.Repeat(request, 50), func(ts *Times) { ts.Write = short }},
		"with an endless header": {"GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 64<<10), func(*Times) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			times := longTimes()
			c.times(&times)
			g, address := serving(t, Limits{Total: 8, PerAddress: 8}, times, io.Discard)
			slow := dial(t, "127.0.0.1", address)
			_, _ = io.WriteString(slow, c.sends) // the connection may be closed already
			if name != "reading none of it" {
				if err := slow.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, slow); os.IsTimeout(err) {
					t.Fatal("the client is still connected")
				}
			}
			until(t, "its slot is free again", func() bool {
				g.mu.Lock()
				defer g.mu.Unlock()
				return g.all == 0
			})
		})
	}
}

func TestIPv6AddressCountsWithItsNetwork(t *testing.T) {
	t.Parallel()
	g := &Listener{
		limits: Limits{Total: 8, PerAddress: 1}, open: map[netip.Prefix]int{}, groups: map[netip.Prefix]int{},
	}
	for _, c := range []struct {
		from string
		in   bool
	}{
		{"[2001:db8::1]:1", true},
		{"[2001:db8::2]:1", false},
		{"[2001:db8:0:1::1]:1", true},
		{"[fe80::1%lo]:1", true},
		{"[::ffff:192.0.2.1]:1", true},
		{"192.0.2.1:2", false},
		{"192.0.2.2:2", true},
	} {
		if _, why := g.acquire(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.from))); (why == "") != c.in {
			t.Errorf("%s: %q", c.from, why)
		}
	}
}

// logged is a buffer for concurrent writers.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
