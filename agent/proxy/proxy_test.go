// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/quorumd/quorumd/contrib/testbed"
)

const bound = 20 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server simulates a voter. It accepts connections, sends its name, and then echoes what it receives.
type server struct {
	net.Listener
	name string
	mu   sync.Mutex
	open []net.Conn
}

func serve(t *testing.T, name string) *server {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{Listener: l, name: name}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.open = append(s.open, conn)
			s.mu.Unlock()
			all.Go(func() {
				defer conn.Close()
				_, _ = io.WriteString(conn, name)
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	t.Cleanup(func() { s.kill(); all.Wait() })
	return s
}

// kill closes the listener and all connections, as the end of a process does.
func (s *server) kill() {
	s.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.open {
		c.Close()
	}
}

func (s *server) voter(use bool) Voter {
	return Voter{Member: s.name, Name: s.name, Address: s.Addr().String(), Use: use, Why: "is SLOW"}
}

// testProxy is a proxy that runs for a test.
type testProxy struct {
	*Proxy
	list   string
	now    atomic.Int64 // nanoseconds added to the clock
	logged *lines
}

type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.b.Write(b) }

func (l *lines) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

func run(t *testing.T, change func(o *Options)) *testProxy {
	t.Helper()
	f := &testProxy{list: filepath.Join(t.TempDir(), FileName), logged: &lines{}}
	clock := since()
	o := Options{
		Listen: "127.0.0.1:0", List: f.list, MaxConnections: 100, Spread: 500 * time.Millisecond,
		Elapsed: func() time.Duration { return clock() + time.Duration(f.now.Load()) },
		Logger:  slog.New(slog.NewTextHandler(f.logged, nil)),
	}
	if change != nil {
		change(&o)
	}
	f.Proxy = New(o)
	if err := f.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- f.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return f
}

// client connects, and returns the connection and the name of the server that answers. The name is "" if no server
// answers, for example because the connection is reset; the connection is nil if it was reset during the dial.
func (f *testProxy) client(t *testing.T) (*net.TCPConn, string) {
	t.Helper()
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "tcp", f.Addr().String())
	if errors.Is(err, syscall.ECONNRESET) { // reset before the dial returned
		return nil, ""
	}
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	name := make([]byte, 2)
	must(t, conn.SetDeadline(time.Now().Add(bound)))
	if _, err := io.ReadFull(conn, name); err != nil {
		return conn.(*net.TCPConn), ""
	}
	return conn.(*net.TCPConn), string(name)
}

func (f *testProxy) writeList(t *testing.T, voters ...Voter) {
	t.Helper()
	write(t, f.list, List{Voters: voters})
}

func (f *testProxy) waitForStatus(t *testing.T, text string) {
	t.Helper()
	testbed.Eventually(t, bound, "the status to show "+text, func() bool { return strings.Contains(f.Status(), text) })
}

func (f *testProxy) waitForLog(t *testing.T, text string) {
	t.Helper()
	testbed.Eventually(t, bound, "the log to show "+text, func() bool {
		return strings.Contains(
			f.logged.String(), text,
		)
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// echoes reports whether a connection carries bytes both ways.
func echoes(conn net.Conn) bool {
	got := make([]byte, 4)
	_, err := io.WriteString(conn, "ping")
	if err == nil {
		_, err = io.ReadFull(conn, got)
	}
	return err == nil && string(got) == "ping"
}

func TestConnectionsAreSpreadEvenlyOverTheVoters(t *testing.T) {
	t.Parallel()
	a, b, c := serve(t, "n1"), serve(t, "n2"), serve(t, "n3")
	f := run(t, nil)
	f.writeList(t, a.voter(true), b.voter(true), c.voter(false))
	f.waitForStatus(t, "n3 0 (is SLOW)")
	got := map[string]int{}
	for range 10 {
		conn, name := f.client(t)
		got[name]++
		if !echoes(conn) {
			t.Fatalf("%s does not echo through the proxy", name)
		}
	}
	if got["n1"] != 5 || got["n2"] != 5 {
		t.Errorf("connections went to %v, want 5 and 5", got)
	}
	want := "10 connections: n1 5, n2 5, n3 0 (is SLOW)"
	if status := f.Status(); status != want {
		t.Errorf("%q, want %q", status, want)
	}
	if open := gauges(t, f, "quorumd_proxy_connections"); open["n1"] != 5 || open["n2"] != 5 || open["n3"] != 0 {
		t.Errorf("quorumd_proxy_connections is %v", open)
	}
	if used := gauges(t, f, "quorumd_proxy_voter_used"); used["n1"] != 1 || used["n3"] != 0 {
		t.Errorf("quorumd_proxy_voter_used is %v", used)
	}
}

// gauges reads a metric by voter, as a scrape does.
func gauges(t *testing.T, f *testProxy, name string) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	must(t, registry.Register(f.Metrics()))
	families, err := registry.Gather()
	must(t, err)
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() != name {
				continue
			}
			for _, l := range m.GetLabel() {
				if l.GetName() == "voter" {
					got[l.GetValue()] = m.GetGauge().GetValue()
				}
			}
		}
	}
	return got
}

func TestOnlyConnectionsToAnExcludedVoterAreClosed(t *testing.T) {
	t.Parallel()
	a, b := serve(t, "n1"), serve(t, "n2")
	f := run(t, nil)
	f.writeList(t, a.voter(true), b.voter(true))
	f.waitForStatus(t, "n2 0")
	of := map[string][]*net.TCPConn{}
	for range 8 {
		conn, name := f.client(t)
		of[name] = append(of[name], conn)
	}
	f.writeList(t, a.voter(false), b.voter(true))
	for _, conn := range of["n1"] {
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("a connection to the excluded voter ends with %v, want EOF", err)
		}
	}
	for _, conn := range of["n2"] {
		if !echoes(conn) {
			t.Error("a connection to the other voter was closed")
		}
	}
	if _, name := f.client(t); name != "n2" {
		t.Errorf("a new connection goes to %q", name)
	}
}

func TestVoterThatIsSelectedAgainAtOnceKeepsItsConnections(t *testing.T) {
	t.Parallel()
	a, b := serve(t, "n1"), serve(t, "n2")
	f := run(t, nil)
	f.writeList(t, a.voter(true))
	f.waitForStatus(t, "n1 0")
	conn, _ := f.client(t)
	f.writeList(t, a.voter(false), b.voter(true))
	f.waitForStatus(t, "n1 1 (is SLOW)")
	f.writeList(t, a.voter(true), b.voter(true))
	testbed.Eventually(t, bound, "n1 to be used", func() bool { return !strings.Contains(f.Status(), "SLOW") })
	f.now.Add(int64(10 * moveAfter))
	f.table.move()
	if !echoes(conn) {
		t.Error("the connection was closed although its voter is selected again")
	}
}

func TestEndpointsServeWithoutAListAndTheirConnectionsStay(t *testing.T) {
	t.Parallel()
	a := serve(t, "n1")
	f := run(t, func(o *Options) { o.Static = []string{"127.0.0.1:1", a.Addr().String()} })
	conn, name := f.client(t)
	if name != "n1" {
		t.Fatalf("%q answers, want n1", name)
	}
	f.writeList(t, a.voter(true))
	f.waitForStatus(t, ": n1 1")
	if !echoes(conn) {
		t.Error("the first list closed the connection")
	}
}

func TestVoterThatAcceptsNoConnectionIsSkipped(t *testing.T) {
	t.Parallel()
	a, b := serve(t, "n1"), serve(t, "n2")
	f := run(t, nil)
	f.writeList(t, a.voter(true), b.voter(true))
	f.waitForStatus(t, "n2 0")
	a.kill()
	for range 4 {
		if _, name := f.client(t); name != "n2" {
			t.Errorf("%q answers", name)
		}
	}
}

func TestClientIsResetAtOnceIfNoVoterAccepts(t *testing.T) {
	t.Parallel()
	a := serve(t, "n1")
	f := run(t, func(o *Options) { o.Static = []string{a.Addr().String()} })
	a.kill()
	began := time.Now()
	_, name := f.client(t)
	if took := time.Since(began); name != "" || took > searchBound {
		t.Errorf("%q answers after %v", name, took)
	}
	f.waitForLog(t, "no voter accepted them")
}

func TestConnectionOverTheLimitIsResetAndTheOthersStay(t *testing.T) {
	t.Parallel()
	a := serve(t, "n1")
	f := run(t, func(o *Options) { o.Static, o.MaxConnections = []string{a.Addr().String()}, 2 })
	one, _ := f.client(t)
	two, _ := f.client(t)
	if _, name := f.client(t); name != "" {
		t.Error("a third connection is accepted")
	}
	if !echoes(one) || !echoes(two) {
		t.Error("an earlier connection was closed")
	}
	one.Close()
	testbed.Eventually(t, bound, "the connection to end", func() bool { return strings.HasPrefix(f.Status(), "1 ") })
	if _, name := f.client(t); name != "n1" {
		t.Error("a connection below the limit is refused")
	}
	if !strings.Contains(f.logged.String(), "connections refused: limit reached") {
		t.Errorf("the refusal is not logged: %s", f.logged)
	}
}

func TestOldOrInvalidListClosesAndRefusesNoConnection(t *testing.T) {
	t.Parallel()
	a, b := serve(t, "n1"), serve(t, "n2")
	f := run(t, nil)
	f.writeList(t, a.voter(true), b.voter(false))
	f.waitForStatus(t, "n2 0 (")
	conn, _ := f.client(t)
	write(t, f.list, List{}) // an empty list
	f.waitForLog(t, "it names no voter")
	f.now.Add(int64(staleAfter + time.Second))
	f.waitForStatus(t, "the list is old")
	if !echoes(conn) {
		t.Error("the connection was closed")
	}
	a.kill()
	if _, name := f.client(t); name != "n2" {
		t.Errorf("%q answers, want n2, as its exclusion is outdated", name)
	}
}

func TestAddressOfTheProxyItselfIsIgnored(t *testing.T) {
	t.Parallel()
	table := newTable("127.0.0.1:2379", 0, since())
	table.static([]string{"localhost:2379", "127.0.0.1:2379", "192.0.2.1:2379"})
	if got := table.order(); len(got) != 1 || got[0].address != "192.0.2.1:2379" {
		t.Errorf("%d voters: %+v", len(got), got)
	}
}

func TestSlowReaderReceivesAllBytesInOrder(t *testing.T) {
	t.Parallel()
	a := serve(t, "n1")
	f := run(t, func(o *Options) { o.Static = []string{a.Addr().String()} })
	conn, _ := f.client(t)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<19) // 8 MiB: more than all buffers between client and voter
	var written sync.WaitGroup
	written.Go(func() {
		_, _ = conn.Write(sent)
		_ = conn.CloseWrite()
	})
	testbed.Eventually(t, bound, "the buffers to be full", func() bool { return queued(t, conn) > 0 })
	got, err := io.ReadAll(conn) // continues after CloseWrite
	written.Wait()
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d of %d bytes came back: %v", len(got), len(sent), err)
	}
}

// queued returns a positive number if received bytes are unread.
func queued(t *testing.T, conn *net.TCPConn) (n int) {
	raw, err := conn.SyscallConn()
	must(t, err)
	peek := make([]byte, 1)
	must(t, raw.Control(func(fd uintptr) {
		n, _, _ = syscall.Recvfrom(int(fd), peek, syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	}))
	return n
}

func TestDeadVoterResetsOnlyItsOwnClients(t *testing.T) {
	t.Parallel()
	a, b := serve(t, "n1"), serve(t, "n2")
	f := run(t, func(o *Options) { o.Static = []string{a.Addr().String(), b.Addr().String()} })
	first, name := f.client(t)
	second, _ := f.client(t)
	mine, other := a, second
	if name == "n2" {
		mine = b
	}
	mine.kill()
	if _, err := first.Read(make([]byte, 1)); err == nil {
		t.Error("the client of the dead voter is not reset")
	}
	if !echoes(other) {
		t.Error("the client of the other voter was reset")
	}
}
