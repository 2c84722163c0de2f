// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/contrib/testbed/tempdir"
)

func bounded(t *testing.T, change func(*limits), set ...func(*desk)) string {
	t.Helper()
	lim := defaultLimits()
	change(&lim)
	d := &desk{}
	for _, f := range set {
		f(d)
	}
	return serving(t, newServer(Options{
		Socket: filepath.Join(tempdir.New(t), "s"), Backend: d, Logger: testLog(t),
	}, lim))
}

func TestASlowClientIsCutOffAndDelaysNoOther(t *testing.T) {
	t.Parallel()
	const late = "PUT /v1/pause HTTP/1.1\r\nHost: quorumd\r\nContent-Length: 100\r\n\r\n{"
	for name, c := range map[string]struct {
		sends  string
		limits func(*limits)
	}{
		"silent":            {"", func(l *limits) { l.header = 100 * time.Millisecond }},
		"within the header": {"GET /v1/sta", func(l *limits) { l.header = 100 * time.Millisecond }},
		"within the body":   {late, func(l *limits) { l.read = 100 * time.Millisecond }},
		"after the first": {"GET /v1/status HTTP/1.1\r\nHost: quorumd\r\n\r\n", func(l *limits) {
			l.idle = 100 * time.Millisecond
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			socket := bounded(t, func(l *limits) {
				l.header, l.read, l.idle = time.Minute, time.Minute, time.Minute
				c.limits(l)
			})
			slow := dial(t, socket)
			if _, err := io.WriteString(slow, c.sends); err != nil {
				t.Fatal(err)
			}
			if _, err := control.Dial(socket).Status(t.Context()); err != nil {
				t.Errorf("another client waits: %v", err)
			}
			if _, err := io.Copy(io.Discard, slow); os.IsTimeout(err) { // the end is EOF or a reset
				t.Error("it is still connected")
			}
		})
	}
}

func TestAnEndlessHeaderIsRefused(t *testing.T) {
	t.Parallel()
	socket := open(t, &desk{})
	status, _ := send(t, socket, "GET /v1/status HTTP/1.1\r\nHost: quorumd\r\nX: "+strings.Repeat("x", 80<<10)+
		"\r\n\r\n")
	if status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("got %d", status)
	}
}

func TestGarbageIsRefused(t *testing.T) {
	t.Parallel()
	socket := open(t, &desk{})
	for _, raw := range []string{
		"\x00\x01\x02\r\n\r\n", "GET\r\n\r\n", "GET /v1/status HTTP/9.9\r\n\r\n",
		"GET /v1/status HTTP/1.1\r\n\r\n",
	} {
		if status, body := send(t, socket, raw); status < 400 {
			t.Errorf("%q: %d %s", raw, status, body)
		}
	}
}

func TestOneUserCannotTakeAllConnections(t *testing.T) {
	t.Parallel()
	socket := bounded(t, func(l *limits) { l.perUser = 3 })
	kept := make([]net.Conn, 3)
	for i := range kept { // a request on each makes sure that it was accepted
		kept[i] = dial(t, socket)
		if _, err := io.WriteString(kept[i], "GET /v1/status HTTP/1.1\r\nHost: quorumd\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(kept[i]), nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp, err)
		}
		resp.Body.Close()
	}
	status, body := ask(t, socket, "GET", "/v1/status", "")
	if e := errorIn(t, body); status != http.StatusServiceUnavailable || e.Code != control.CodeBusy {
		t.Errorf("%d %s", status, body)
	}
	for range 50 { // the server closes before or after the client has written
		if _, err := control.Dial(socket).Status(t.Context()); codeOf(err) != control.CodeBusy {
			t.Fatalf("the client says %v", err)
		}
	}
	kept[0].Close()
	until(t, "the place is free again", func() bool {
		_, err := control.Dial(socket).Status(t.Context())
		return err == nil
	})
}

func TestStrangersLeaveConnectionsForTheGroupAndTheGroupForRoot(t *testing.T) {
	t.Parallel()
	const group = 991
	g := &guard{
		perUser: 3, strangers: 3, everyone: 5, open: map[uint32]int{},
		rules: rules{self: 990, gid: group, known: true},
	}
	stranger := func(uid uint32) peer { return peer{uid: uid, gid: 100} }
	member := func(uid uint32) peer { return peer{uid: uid, gid: 100, groups: []uint32{group}} }
	root := peer{}
	var inside []peer
	for i, c := range []struct {
		who peer
		in  bool
	}{
		// all connections of users who may only read
		{stranger(1000), true},
		{stranger(1000), true},
		{stranger(1001), true},
		{stranger(1002), false},
		{member(1003), true},
		{member(1004), true},
		{member(1003), false}, // all connections but root's
		{root, true},
		{root, true},
		{root, true},
		{root, false},
	} {
		if in := g.enter(c.who); in != c.in {
			t.Errorf("%d: uid %d: got %v", i, c.who.uid, in)
		} else if in {
			inside = append(inside, c.who)
		}
	}
	for _, p := range inside {
		g.leave(p)
	}
	if len(g.open) != 0 || g.all != 0 || g.look != 0 {
		t.Errorf("left behind: %v, %d, %d", g.open, g.all, g.look)
	}
}

// TestStrangersReadsLeaveSlotsForTheGroup uses up all slots of users who may only read, with the history.
func TestStrangersReadsLeaveSlotsForTheGroup(t *testing.T) {
	t.Parallel()
	const group = 991
	begun, finish := make(chan struct{}), make(chan struct{})
	d := &desk{history: func(context.Context) error { begun <- struct{}{}; <-finish; return nil }}
	lim := defaultLimits()
	s := newServer(Options{Backend: d, Logger: testLog(t)}, lim)
	s.rules = rules{self: 990, gid: group, known: true}
	history := func(p peer) int {
		status, _ := handle(t, s, "GET", "/v1/history", "", p)
		return status
	}
	ended := make(chan int, lim.waiting+1)
	for range lim.waiting {
		go func() { ended <- history(peer{uid: 1000, gid: 100}) }()
		<-begun
	}
	if status := history(peer{uid: 1001, gid: 100}); status != http.StatusServiceUnavailable {
		t.Errorf("one stranger more got %d", status)
	}
	go func() { ended <- history(peer{uid: 1002, gid: 100, groups: []uint32{group}}) }()
	<-begun
	close(finish)
	for range lim.waiting + 1 {
		if status := <-ended; status != http.StatusOK {
			t.Errorf("got %d", status)
		}
	}
}

func TestARequestInFlightMayFinishWhenTheServerStops(t *testing.T) {
	t.Parallel()
	begun, finish := make(chan struct{}), make(chan struct{})
	s := New(Options{
		Socket: filepath.Join(tempdir.New(t), "s"),
		Backend: &desk{change: func(ctx context.Context) error {
			close(begun)
			<-finish
			return ctx.Err()
		}},
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	answer := make(chan error, 1)
	go func() {
		_, err := control.Dial(s.opt.Socket).Resume(context.Background())
		answer <- err
	}()
	<-begun
	stop()
	until(t, "the socket is gone", func() bool {
		_, err := os.Lstat(s.opt.Socket)
		return err != nil
	})
	close(finish)
	if err := <-answer; err != nil {
		t.Errorf("it was cut off: %v", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// until waits for a condition, with a timeout.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(10 * time.Second); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

func TestARecoveryPlanMayBeLargerThanOtherRequests(t *testing.T) {
	t.Parallel()
	const valid = `{"version":1}`
	s := newServer(Options{Backend: &desk{}}, defaultLimits())
	large := strings.Repeat(" ", 128<<10) + valid
	for path, want := range map[string]bool{"/v1/recovery": false, "/v1/pause": true} {
		status, answer := handle(t, s, "PUT", path, large, peer{})
		if got := strings.Contains(answer, "too large") || strings.Contains(answer, "is over"); got != want {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
}
