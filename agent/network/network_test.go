// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/testbed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A peer port that refuses this host's certificate is probed once a minute. If its member dies, the member counts as
// lost sooner than that.
func TestDeadMemberThatRefusedTheCertificateIsLostAsSoon(t *testing.T) {
	t.Parallel()
	m, _ := etcd(t, true)
	began := time.Now()
	p := New(Options{Now: func() time.Duration { return time.Since(began) }})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	defer func() { cancel(); <-done }()
	p.Watch([]Member{{2, "n2", m.Options.PeerURL, m.Options.ClientURL}}, time.Hour)
	p.ProbeNow(2, 1)
	testbed.Eventually(t, 30*time.Second, "the peer port is reached, and refuses", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.members[0].ports[0].certRefused && !p.members[0].ports[1].probing
	})
	if err := m.Kill9(); err != nil {
		t.Fatal(err)
	}
	<-m.Done()
	p.mu.Lock()
	p.members[0].ports[1].due = 0 // the client port is due now, the peer port in an hour
	p.mu.Unlock()
	p.wake()
	testbed.Eventually(t, 30*time.Second, "the member is lost", func() bool { return p.Readings()[0].Lost })
}

func TestRecoveringPortThatRefusesTheCertificateIsProbedOften(t *testing.T) {
	t.Parallel()
	p := New(Options{Now: func() time.Duration { return 0 }})
	w := portProbe{published: Port{State: record.PortUnreachable}}
	for range recoverAfter {
		if wait := p.wait(&w); wait >= certRefusedEvery*3/4 {
			t.Fatalf("the port is %s and probed again after %s", w.published.State, wait)
		}
		w.record(result{state: record.PortAnswers, certRefused: true})
	}
	if wait := p.wait(&w); w.published.State != record.PortAnswers || wait < certRefusedEvery*3/4 {
		t.Errorf("the port is %s and probed again after %s", w.published.State, wait)
	}
}

// etcd starts a member. If secured is true, the member uses TLS, and etcd also returns the CA of its certificates.
func etcd(t *testing.T, secured bool) (m *testbed.Member, ca *testbed.CA) {
	t.Helper()
	o := testbed.ClusterOptions{Extra: []string{"--unsafe-no-fsync"}}
	if secured {
		var err error
		if ca, err = testbed.NewCA(t.TempDir()); err != nil {
			t.Fatal(err)
		}
		files, err := ca.Issue("server", testbed.CertOptions{})
		if err != nil {
			t.Fatal(err)
		}
		o.TLS = &files
	}
	return testbed.StartCluster(t, 1, o).Members[0], ca
}

func targetOf(t *testing.T, url string) target {
	t.Helper()
	at, ok := parseTarget(url)
	if !ok {
		t.Fatalf("%s has no port", url)
	}
	return at
}

func TestEtcdAnswersSmallAndLargeRequestsAndLogsNoWarning(t *testing.T) {
	t.Parallel()
	for _, secured := range []bool{false, true} {
		m, ca := etcd(t, secured)
		l := requester{answer: 10 * time.Second}
		if secured {
			files, err := ca.Issue("agent", testbed.CertOptions{})
			if err != nil {
				t.Fatal(err)
			}
			l.tls = func() *tls.Config {
				conf, err := files.ClientConfig()
				if err != nil {
					t.Error(err)
				}
				return conf
			}
		}
		for _, url := range []string{m.Options.PeerURL, m.Options.ClientURL} {
			for _, large := range []bool{false, true} {
				got := l.probe(t.Context(), targetOf(t, url), large)
				if got.state != record.PortAnswers || got.certRefused || got.took <= 0 || got.sent < 2 {
					t.Errorf("%s, large %t: %+v", url, large, got)
				}
			}
		}
		log, err := os.ReadFile(m.LogPath())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(log), "rejected connection") {
			t.Errorf("etcd has logged warnings:\n%s", log)
		}
	}
}

func TestEtcdThatRefusesTheCertificateIsReachedAndProbedRarely(t *testing.T) {
	t.Parallel()
	m, _ := etcd(t, true)
	got := requester{answer: 10 * time.Second}.probe(t.Context(), targetOf(t, m.Options.PeerURL), true)
	if got.state != record.PortAnswers || !got.certRefused {
		t.Errorf("got %+v", got)
	}
	p := New(Options{Now: func() time.Duration { return 0 }})
	w := portProbe{}
	w.record(got)
	if wait := p.wait(&w); wait < certRefusedEvery*3/4 {
		t.Errorf("it is probed again after %s, and logs each time", wait)
	}
}

// listen returns "://" and the address of a listener. The function answer serves each of its connections.
func listen(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			answer(conn)
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return "://" + l.Addr().String()
}

// short sends requests with a short timeout.
var short = requester{answer: 300 * time.Millisecond}

func TestClosedPortIsRefusedAndTheNetworkIsGood(t *testing.T) {
	t.Parallel()
	address := fmt.Sprintf("127.0.0.1:%d", testbed.FreePorts(t, 1)[0])
	got := short.probe(t.Context(), targetOf(t, "http://"+address), false)
	if got.state != record.PortRefused || got.state.Broken() {
		t.Errorf("got %+v", got)
	}
}

func TestServerThatNeverAnswersIsSilent(t *testing.T) {
	t.Parallel()
	held := listen(t, func(conn net.Conn) { _ = readUntilClosed(conn) })
	for _, scheme := range []string{"http", "https"} {
		for _, large := range []bool{false, true} {
			if got := short.probe(t.Context(), targetOf(t, scheme+held), large); got.state != record.PortSilent {
				t.Errorf("%s, large %t: got %+v", scheme, large, got)
			}
		}
	}
}

func readUntilClosed(conn net.Conn) int {
	var all int
	b := make([]byte, 1<<10)
	for {
		n, err := conn.Read(b)
		if all += n; err != nil {
			return all
		}
	}
}

// The server simulates a path that drops large packets: it never answers a large request.
func TestPathThatDropsLargePacketsIsDetected(t *testing.T) {
	t.Parallel()
	small := func(conn net.Conn) {
		var b [8 << 10]byte
		if n, err := conn.Read(b[:]); err == nil && n < 1400 {
			_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
			return
		}
		_ = readUntilClosed(conn)
	}
	url := "http" + listen(t, small)
	if got := short.probe(t.Context(), targetOf(t, url), true); got.state != record.PortLargeLost {
		t.Errorf("got %+v", got)
	}
	if got := short.probe(t.Context(), targetOf(t, url), false); got.state != record.PortAnswers {
		t.Errorf("a small request: %+v", got)
	}
}

// With TLS, the answer is large because it contains the certificates.
func TestLostLargeAnswerIsReportedAsLargeLost(t *testing.T) {
	t.Parallel()
	hello := func(conn net.Conn) {
		var b [8 << 10]byte
		if n, _ := conn.Read(b[:]); n > 0 && b[0] == 22 { // a TLS handshake: any answer is lost
			_ = readUntilClosed(conn)
		}
	}
	got := short.probe(t.Context(), targetOf(t, "https"+listen(t, hello)), false)
	if got.state != record.PortLargeLost {
		t.Errorf("got %+v", got)
	}
}

func TestClientHelloFitsIntoASmallPacketUnlessItIsLarge(t *testing.T) {
	t.Parallel()
	for _, large := range []bool{false, true} {
		sizes := make(chan int, 2)
		url := "https" + listen(t, func(conn net.Conn) {
			var b [16 << 10]byte
			n, _ := conn.Read(b[:])
			sizes <- n
		})
		short.probe(t.Context(), targetOf(t, url), large)
		if n := <-sizes; (n < 600) == large || (n > padding) != large {
			t.Errorf("large %t: the ClientHello has %d bytes", large, n)
		}
	}
}

func TestEndlessAnswerIsCutOff(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	defer ours.Close()
	go func() {
		defer theirs.Close()
		for {
			if _, err := theirs.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	}()
	h := &limited{Conn: ours}
	if n := readUntilClosed(h); n != maxAnswer {
		t.Errorf("%d bytes were read", n)
	}
}

func TestThreeLostRequestsInARowCountAndOneDoesNot(t *testing.T) {
	t.Parallel()
	var w portProbe
	probe := func(states ...record.PortState) {
		for _, s := range states {
			w.record(result{state: s, took: time.Millisecond})
		}
	}
	probe(record.PortAnswers)
	if w.published.State != record.PortAnswers || w.published.RTT != time.Millisecond {
		t.Errorf("after an answer: %+v", w.published)
	}
	probe(record.PortUnreachable, record.PortUnreachable, record.PortAnswers, record.PortSilent, record.PortUnreachable)
	if w.published.State != record.PortAnswers {
		t.Errorf("after two without an answer: %+v", w.published)
	}
	if probe(record.PortUnreachable); w.published.State != record.PortUnreachable {
		t.Errorf("after three: %+v", w.published)
	}
	probe(record.PortAnswers, record.PortAnswers, record.PortAnswers, record.PortAnswers, record.PortAnswers)
	if w.published.State != record.PortUnreachable {
		t.Errorf("after five answers: %+v", w.published)
	}
	if probe(record.PortAnswers); w.published.State != record.PortAnswers {
		t.Errorf("after six: %+v", w.published)
	}
}

func TestSegmentsOfUnansweredProbesAreNotCounted(t *testing.T) {
	t.Parallel()
	var w portProbe
	for _, s := range []record.PortState{
		record.PortAnswers, record.PortSilent, record.PortLargeLost, record.PortUnreachable, record.PortAnswers,
	} {
		w.record(result{state: s, sent: 10, resent: 3})
	}
	if w.published.Sent != 20 || w.published.Resent != 6 {
		t.Errorf("%d of %d are counted", w.published.Resent, w.published.Sent)
	}
}

func TestLargeRequestIsSentEachMinuteAndRepeatedWhileUnanswered(t *testing.T) {
	t.Parallel()
	w := portProbe{largeSent: true, largeAt: time.Hour}
	w.record(result{state: record.PortAnswers, large: true})
	if w.large(time.Hour+largeEvery-1) || !w.large(time.Hour+largeEvery) {
		t.Error("no large request each minute")
	}
	w.record(result{state: record.PortLargeLost, large: true})
	if !w.large(time.Hour) {
		t.Error("the lost request is not repeated at once")
	}
}

func TestProberForgetsMembersThatItNoLongerWatches(t *testing.T) {
	t.Parallel()
	url := "http" + listen(t, func(conn net.Conn) { _, _ = conn.Write([]byte("x")) })
	began := time.Now()
	p := New(Options{Now: func() time.Duration { return time.Since(began) }})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	defer func() { cancel(); <-done }()
	p.Watch([]Member{{2, "n2", url, "unix:///nowhere"}, {1, "n1", url, url}}, 20*time.Millisecond)
	testbed.Eventually(t, 30*time.Second, "both are reached", func() bool {
		s := p.Readings()
		return len(s) == 2 && s[0].Member == 1 && s[0].Peer.State == record.PortAnswers &&
			s[0].Client.State == record.PortAnswers && s[1].Name == "n2" && s[1].Peer.State == record.PortAnswers &&
			s[1].Peer.RTT > 0 && s[1].Client.State == record.PortUnknown
	})
	p.Watch([]Member{{2, "n2", url, "unix:///nowhere"}}, 20*time.Millisecond)
	if s := p.Readings(); len(s) != 1 || s[0].Peer.State != record.PortAnswers {
		t.Errorf("the result of the remaining member is %+v", s)
	}
	p.Watch(make([]Member, 100), time.Second)
	if n := len(p.Readings()); n != MaxMembers {
		t.Errorf("%d members are probed", n)
	}
}

func TestPaceSlowsDownSparesOfALargeFleetOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rests bool
		hosts int
		want  time.Duration
	}{{false, 1000, Every}, {true, 5, Every}, {true, 1000, 100 * time.Second}} {
		if got := Pace(c.rests, c.hosts); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestMemberIsLostAfterTwoFailedProbesOfBothPortsUntilOneConnects(t *testing.T) {
	t.Parallel()
	m := member{Member: Member{ID: 2}}
	sees := func(at time.Duration, peer, client result) Reading {
		m.ports[0].recordConnection(at, peer)
		m.ports[1].recordConnection(at+time.Second, client)
		return m.reading(at - time.Minute)
	}
	gone, closed := result{state: record.PortUnreachable}, result{state: record.PortRefused}
	hangs := result{state: record.PortSilent}
	answers, unsure := result{state: record.PortAnswers}, result{state: record.PortUnreachable, unsure: true}
	for i, c := range []struct {
		what         string
		peer, client result
		lost         bool
	}{
		{"first failure", gone, gone, false},
		{"second failure", gone, closed, true},
		{"third failure", closed, gone, true},
		{"a failure of this host", unsure, gone, true},
		{"the process behind a port hangs", gone, hangs, false},
		{"first failure again", gone, gone, false},
		{"second failure again", gone, gone, true},
		{"only the peer port answers", answers, gone, false},
	} {
		at := time.Duration(i+1) * 10 * time.Second
		s := sees(at, c.peer, c.client)
		if s.Lost != c.lost {
			t.Errorf("%s: %+v", c.what, s)
		}
		if c.what == "third failure" && (s.LostAt != 11*time.Second || s.LookedAt != 30*time.Second) {
			t.Errorf("lost at %s, probed at %s", s.LostAt, s.LookedAt)
		}
	}
}

func TestOldProbeDoesNotMakeAMemberLost(t *testing.T) {
	t.Parallel()
	m := member{}
	for _, at := range []time.Duration{time.Minute, 70 * time.Second} {
		m.ports[0].recordConnection(at, result{state: record.PortUnreachable})
		m.ports[1].recordConnection(at, result{state: record.PortUnreachable})
	}
	if s := m.reading(70 * time.Second); !s.Lost {
		t.Errorf("%+v", s)
	}
	if s := m.reading(71 * time.Second); s.Lost {
		t.Errorf("%+v", s)
	}
}

func TestClosedPortIsProbedAgainWithinSecondsAndAtOnceOnDemand(t *testing.T) {
	t.Parallel()
	url := fmt.Sprintf("http://127.0.0.1:%d", testbed.FreePorts(t, 1)[0])
	began := time.Now()
	p := New(Options{Now: func() time.Duration { return time.Since(began) }})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	defer func() { cancel(); <-done }()
	p.Watch([]Member{{2, "n2", url, url}}, time.Hour)
	p.ProbeNow(2, 1)
	testbed.Eventually(t, 30*time.Second, "the member is lost, although the interval is an hour", func() bool {
		return p.Readings()[0].Lost
	})
	asked := time.Since(began)
	p.ProbeNow(2, asked)
	testbed.Eventually(t, 30*time.Second, "the member is probed again", func() bool {
		return p.Readings()[0].LookedAt >= asked
	})
}
