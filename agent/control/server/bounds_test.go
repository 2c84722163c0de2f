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

// serveWithLimits serves a fake backend with changed limits and returns the path of the socket.
func serveWithLimits(t *testing.T, change func(*limits), set ...func(*fake)) string {
	t.Helper()
	lim := defaultLimits()
	change(&lim)
	d := &fake{}
	for _, f := range set {
		f(d)
	}
	return startServer(t, newServer(Options{
		Socket: filepath.Join(tempdir.New(t), "s"), Backend: d, Logger: testLog(t),
	}, lim))
}

func TestASlowClientIsDisconnectedAndDelaysNoOtherClient(t *testing.T) {
	t.Parallel()
	const partial = "PUT /v1/pause HTTP/1.1\r\nHost: quorumd\r\nContent-Length: 100\r\n\r\n{"
	for name, c := range map[string]struct {
		sends  string
		limits func(*limits)
	}{
		"silent":        {"", func(l *limits) { l.header = 100 * time.Millisecond }},
		"in the header": {"GET /v1/sta", func(l *limits) { l.header = 100 * time.Millisecond }},
		"in the body":   {partial, func(l *limits) { l.read = 100 * time.Millisecond }},
		"after one request": {"GET /v1/status HTTP/1.1\r\nHost: quorumd\r\n\r\n", func(l *limits) {
			l.idle = 100 * time.Millisecond
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			socket := serveWithLimits(t, func(l *limits) {
				l.header, l.read, l.idle = time.Minute, time.Minute, time.Minute
				c.limits(l)
			})
			slow := dial(t, socket)
			if _, err := io.WriteString(slow, c.sends); err != nil {
				t.Fatal(err)
			}
			if _, err := control.Dial(socket).Status(t.Context()); err != nil {
				t.Errorf("another client: %v", err)
			}
			if _, err := io.Copy(io.Discard, slow); os.IsTimeout(err) { // a disconnection is EOF or a reset
				t.Error("the slow client is still connected")
			}
		})
	}
}

func TestALargeHeaderIsRefused(t *testing.T) {
	t.Parallel()
	socket := serveBackend(t, &fake{})
	status, _ := sendRaw(t, socket, "GET /v1/status HTTP/1.1\r\nHost: quorumd\r\nX: "+strings.Repeat("x", 80<<10)+
		"\r\n\r\n")
	if status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("got %d", status)
	}
}

func TestGarbageIsRefused(t *testing.T) {
	t.Parallel()
	socket := serveBackend(t, &fake{})
	for _, raw := range []string{
		"\x00\x01\x02\r\n\r\n", "GET\r\n\r\n", "GET /v1/status HTTP/9.9\r\n\r\n",
		"GET /v1/status HTTP/1.1\r\n\r\n",
	} {
		if status, body := sendRaw(t, socket, raw); status < 400 {
			t.Errorf("%q: %d %s", raw, status, body)
		}
	}
}

func TestOneUserCannotUseAllConnections(t *testing.T) {
	t.Parallel()
	socket := serveWithLimits(t, func(l *limits) { l.perUser = 3 })
	kept := make([]net.Conn, 3)
	for i := range kept { // an answer shows that the server has accepted the connection
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
	status, body := call(t, socket, "GET", "/v1/status", "")
	if e := errorIn(t, body); status != http.StatusServiceUnavailable || e.Code != control.CodeBusy {
		t.Errorf("%d %s", status, body)
	}
	for range 50 { // the server may close before or after the client has written
		if _, err := control.Dial(socket).Status(t.Context()); codeOf(err) != control.CodeBusy {
			t.Fatalf("client: %v", err)
		}
	}
	kept[0].Close()
	eventually(t, "a connection is available again", func() bool {
		_, err := control.Dial(socket).Status(t.Context())
		return err == nil
	})
}

func TestConnectionsAreReservedForTheGroupAndForRoot(t *testing.T) {
	t.Parallel()
	const group = 991
	l := &peerListener{
		maxPerUser: 3, maxReaders: 3, maxNonRoot: 5, byUser: map[uint32]int{},
		rules: rules{self: 990, gid: group, known: true},
	}
	reader := func(uid uint32) peer { return peer{uid: uid, gid: 100} }
	member := func(uid uint32) peer { return peer{uid: uid, gid: 100, groups: []uint32{group}} }
	root := peer{}
	var admitted []peer
	for i, c := range []struct {
		peer peer
		want bool
	}{
		// up to the limit of users who may only read
		{reader(1000), true},
		{reader(1000), true},
		{reader(1001), true},
		{reader(1002), false},
		{member(1003), true},
		{member(1004), true},
		{member(1003), false}, // over the limit of all users but root
		{root, true},
		{root, true},
		{root, true},
		{root, false},
	} {
		got := l.admit(c.peer)
		if got != c.want {
			t.Errorf("%d: uid %d: got %v", i, c.peer.uid, got)
		}
		if got {
			admitted = append(admitted, c.peer)
		}
	}
	for _, p := range admitted {
		l.release(p)
	}
	if len(l.byUser) != 0 || l.nonRoot != 0 || l.readers != 0 {
		t.Errorf("left over: %v, %d, %d", l.byUser, l.nonRoot, l.readers)
	}
}

// Requests for the history use all slots of users who may only read.
func TestReadersLeaveSlotsForTheGroup(t *testing.T) {
	t.Parallel()
	const group = 991
	begun, finish := make(chan struct{}), make(chan struct{})
	d := &fake{history: func(context.Context) error { begun <- struct{}{}; <-finish; return nil }}
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
		t.Errorf("another user who may only read: got %d", status)
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
		Backend: &fake{change: func(ctx context.Context) error {
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
	eventually(t, "the socket is removed", func() bool {
		_, err := os.Lstat(s.opt.Socket)
		return err != nil
	})
	close(finish)
	if err := <-answer; err != nil {
		t.Errorf("the request in flight: %v", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// eventually waits for a condition, for 10 s.
func eventually(t *testing.T, what string, holds func() bool) {
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
	s := newServer(Options{Backend: &fake{}}, defaultLimits())
	large := strings.Repeat(" ", 128<<10) + valid
	for path, want := range map[string]bool{"/v1/recovery": false, "/v1/pause": true} {
		status, answer := handle(t, s, "PUT", path, large, peer{})
		if got := strings.Contains(answer, "too large") || strings.Contains(answer, "is over"); got != want {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
}
