// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorumd/quorumd/contrib/testbed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A peer port that refuses this host's certificate is probed once a minute. If its member dies, the member is lost as
// soon as any other.
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
		return p.members[0].ways[0].barred && !p.members[0].ways[1].busy
	})
	if err := m.Kill9(); err != nil {
		t.Fatal(err)
	}
	<-m.Done()
	p.mu.Lock()
	p.members[0].ways[1].due = 0 // the client port is due now, the peer port in an hour
	p.mu.Unlock()
	p.wake()
	testbed.Eventually(t, 30*time.Second, "it is lost", func() bool { return p.Sights()[0].Lost })
}

func TestRecoveringPortThatRefusesTheCertificateIsProbedOften(t *testing.T) {
	t.Parallel()
	p := New(Options{Now: func() time.Duration { return 0 }})
	w := way{shown: Way{State: Unreachable}}
	for range wellAfter {
		if wait := p.wait(&w); wait >= barredEvery*3/4 {
			t.Fatalf("it is probed again after %s, and is %s meanwhile", wait, w.shown.State)
		}
		w.found(look{state: Answers, barred: true})
	}
	if wait := p.wait(&w); w.shown.State != Answers || wait < barredEvery*3/4 {
		t.Errorf("it is %s, and probed again after %s", w.shown.State, wait)
	}
}

// etcd runs a member, and returns the CA of its clients if it has one.
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

func where(t *testing.T, url string) port {
	t.Helper()
	at, ok := portOf(url)
	if !ok {
		t.Fatalf("%s has no port", url)
	}
	return at
}

func TestEtcdAnswersSmallAndLargeRequestsAndLogsNoWarning(t *testing.T) {
	t.Parallel()
	for _, secured := range []bool{false, true} {
		m, ca := etcd(t, secured)
		l := looker{answer: 10 * time.Second}
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
				found := l.look(t.Context(), where(t, url), large)
				if found.state != Answers || found.barred || found.took <= 0 || found.sent < 2 {
					t.Errorf("%s, large %t: %+v", url, large, found)
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
	found := looker{answer: 10 * time.Second}.look(t.Context(), where(t, m.Options.PeerURL), true)
	if found.state != Answers || !found.barred {
		t.Errorf("found %+v", found)
	}
	p := New(Options{Now: func() time.Duration { return 0 }})
	w := way{}
	w.found(found)
	if wait := p.wait(&w); wait < barredEvery*3/4 {
		t.Errorf("it is probed again after %s, and logs each time", wait)
	}
}

// listens returns a port of this test on which answer serves.
func listens(t *testing.T, answer func(net.Conn)) string {
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

// short is a looker with a short timeout.
var short = looker{answer: 300 * time.Millisecond}

func TestClosedPortIsRefusedAndTheNetworkIsGood(t *testing.T) {
	t.Parallel()
	address := fmt.Sprintf("127.0.0.1:%d", testbed.FreePorts(t, 1)[0])
	found := short.look(t.Context(), where(t, "http://"+address), false)
	if found.state != Refused || found.state.Broken() {
		t.Errorf("found %+v", found)
	}
}

func TestServerThatNeverAnswersIsSilent(t *testing.T) {
	t.Parallel()
	held := listens(t, func(conn net.Conn) { _ = readUntilClosed(conn) })
	for _, scheme := range []string{"http", "https"} {
		for _, large := range []bool{false, true} {
			if found := short.look(t.Context(), where(t, scheme+held), large); found.state != Silent {
				t.Errorf("%s, large %t: found %+v", scheme, large, found)
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

// A black hole for large packets, as a client sees it: large requests are never answered.
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
	url := "http" + listens(t, small)
	if found := short.look(t.Context(), where(t, url), true); found.state != LargeLost {
		t.Errorf("found %+v", found)
	}
	if found := short.look(t.Context(), where(t, url), false); found.state != Answers {
		t.Errorf("a small question: %+v", found)
	}
}

// With TLS the answer is large: it has the certificates.
func TestLostLargeAnswerIsNotSilence(t *testing.T) {
	t.Parallel()
	hello := func(conn net.Conn) {
		var b [8 << 10]byte
		if n, _ := conn.Read(b[:]); n > 0 && b[0] == 22 { // a TLS handshake: any answer is lost
			_ = readUntilClosed(conn)
		}
	}
	found := short.look(t.Context(), where(t, "https"+listens(t, hello)), false)
	if found.state != LargeLost {
		t.Errorf("found %+v", found)
	}
}

func TestClientHelloFitsIntoASmallPacketUnlessItIsLarge(t *testing.T) {
	t.Parallel()
	for _, large := range []bool{false, true} {
		sizes := make(chan int, 2)
		url := "https" + listens(t, func(conn net.Conn) {
			var b [16 << 10]byte
			n, _ := conn.Read(b[:])
			sizes <- n
		})
		short.look(t.Context(), where(t, url), large)
		if n := <-sizes; (n < 600) == large || (n > padding) != large {
			t.Errorf("large %t: it has %d bytes", large, n)
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
	if n := readUntilClosed(h); n != mostOfAnswer {
		t.Errorf("%d bytes were read", n)
	}
}

func TestThreeLostRequestsInARowCountAndOneDoesNot(t *testing.T) {
	t.Parallel()
	var w way
	look3 := func(states ...State) {
		for _, s := range states {
			w.found(look{state: s, took: time.Millisecond})
		}
	}
	look3(Answers)
	if w.shown.State != Answers || w.shown.RTT != time.Millisecond {
		t.Errorf("after an answer: %+v", w.shown)
	}
	look3(Unreachable, Unreachable, Answers, Silent, Unreachable)
	if w.shown.State != Answers {
		t.Errorf("after two without an answer: %+v", w.shown)
	}
	if look3(Unreachable); w.shown.State != Unreachable {
		t.Errorf("after three: %+v", w.shown)
	}
	look3(Answers, Answers, Answers, Answers, Answers)
	if w.shown.State != Unreachable {
		t.Errorf("after five answers: %+v", w.shown)
	}
	if look3(Answers); w.shown.State != Answers {
		t.Errorf("after six: %+v", w.shown)
	}
}

func TestSegmentsOfUnansweredProbesAreNotCounted(t *testing.T) {
	t.Parallel()
	var w way
	for _, s := range []State{Answers, Silent, LargeLost, Unreachable, Answers} {
		w.found(look{state: s, sent: 10, resent: 3})
	}
	if w.shown.Sent != 20 || w.shown.Resent != 6 {
		t.Errorf("%d of %d are counted", w.shown.Resent, w.shown.Sent)
	}
}

func TestLargeRequestIsSentEachMinuteAndRepeatedWhileUnanswered(t *testing.T) {
	t.Parallel()
	w := way{asked: true, largeAt: time.Hour}
	w.found(look{state: Answers, large: true})
	if w.large(time.Hour+largeEvery-1) || !w.large(time.Hour+largeEvery) {
		t.Error("no request each minute")
	}
	w.found(look{state: LargeLost, large: true})
	if !w.large(time.Hour) {
		t.Error("no request at once")
	}
}

func TestProberForgetsMembersThatItNoLongerWatches(t *testing.T) {
	t.Parallel()
	url := "http" + listens(t, func(conn net.Conn) { _, _ = conn.Write([]byte("x")) })
	began := time.Now()
	p := New(Options{Now: func() time.Duration { return time.Since(began) }})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	defer func() { cancel(); <-done }()
	p.Watch([]Member{{2, "n2", url, "unix:///nowhere"}, {1, "n1", url, url}}, 20*time.Millisecond)
	testbed.Eventually(t, 30*time.Second, "both are reached", func() bool {
		s := p.Sights()
		return len(s) == 2 && s[0].Member == 1 && s[0].Peer.State == Answers && s[0].Client.State == Answers &&
			s[1].Name == "n2" && s[1].Peer.State == Answers && s[1].Peer.RTT > 0 && s[1].Client.State == Unknown
	})
	p.Watch([]Member{{2, "n2", url, "unix:///nowhere"}}, 20*time.Millisecond)
	if s := p.Sights(); len(s) != 1 || s[0].Peer.State != Answers {
		t.Errorf("the result of the remaining member is %+v", s)
	}
	p.Watch(make([]Member, 100), time.Second)
	if n := len(p.Sights()); n != MostMembers {
		t.Errorf("%d members are looked at", n)
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

func TestParseStateReadsNames(t *testing.T) {
	t.Parallel()
	for s := Unknown; s <= LargeLost; s++ {
		if ParseState(s.String()) != s {
			t.Errorf("%s is read as %s", s, ParseState(s.String()))
		}
	}
	if ParseState("of a later version") != Unknown || slices.Contains(stateNames(), State(99).String()) {
		t.Error("a state that there is not has a name")
	}
}

func TestMemberIsLostAfterTwoFailedProbesOfBothPortsUntilOneConnects(t *testing.T) {
	t.Parallel()
	m := member{Member: Member{ID: 2}}
	sees := func(at time.Duration, peer, client look) Sight {
		m.ways[0].took(at, peer)
		m.ways[1].took(at+time.Second, client)
		return m.sight(at - time.Minute)
	}
	gone, closed, hangs := look{state: Unreachable}, look{state: Refused}, look{state: Silent}
	answers, unsure := look{state: Answers}, look{state: Unreachable, unsure: true}
	for i, c := range []struct {
		what         string
		peer, client look
		lost         bool
	}{
		{"a first look", gone, gone, false},
		{"a second one", gone, closed, true},
		{"a third one", closed, gone, true},
		{"a failure of this host", unsure, gone, true},
		{"something hangs behind a port", gone, hangs, false},
		{"no answer once more", gone, gone, false},
		{"and again", gone, gone, true},
		{"the peer port alone answers", answers, gone, false},
	} {
		at := time.Duration(i+1) * 10 * time.Second
		s := sees(at, c.peer, c.client)
		if s.Lost != c.lost {
			t.Errorf("%s: %+v", c.what, s)
		}
		if c.what == "a third one" && (s.LostAt != 11*time.Second || s.LookedAt != 30*time.Second) {
			t.Errorf("lost since %s, looked at %s", s.LostAt, s.LookedAt)
		}
	}
}

func TestOldProbeDoesNotMakeAMemberLost(t *testing.T) {
	t.Parallel()
	m := member{}
	for _, at := range []time.Duration{time.Minute, 70 * time.Second} {
		m.ways[0].took(at, look{state: Unreachable})
		m.ways[1].took(at, look{state: Unreachable})
	}
	if s := m.sight(70 * time.Second); !s.Lost {
		t.Errorf("%+v", s)
	}
	if s := m.sight(71 * time.Second); s.Lost {
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
	testbed.Eventually(t, 30*time.Second, "it is lost, although it is probed once an hour", func() bool {
		return p.Sights()[0].Lost
	})
	asked := time.Since(began)
	p.ProbeNow(2, asked)
	testbed.Eventually(t, 30*time.Second, "it is probed again", func() bool {
		return p.Sights()[0].LookedAt >= asked
	})
}
