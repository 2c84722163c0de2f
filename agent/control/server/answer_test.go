// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"fmt"
	"math"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
)

// stuck requests a path and reads only the header of the answer.
func stuck(t *testing.T, socket, path string) (net.Conn, *http.Response) {
	t.Helper()
	c := dial(t, socket)
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: quorumd\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	return c, resp
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// largeStatus is a status of 4 MiB.
func largeStatus() control.Status {
	s := control.Status{Cluster: control.Cluster{Name: "prod"}}
	for i := range 400 {
		s.Hosts = append(s.Hosts, control.HostRecord{ID: fmt.Sprint(i), HealthText: strings.Repeat("x", 10<<10)})
	}
	return s
}

// TestClientsThatDoNotReadUseLittleMemory is not parallel: it measures the heap of the process. One user requests a
// status of 4 MiB, of a new round each time, on all permitted connections and reads none of them.
func TestClientsThatDoNotReadUseLittleMemory(t *testing.T) {
	const readers, most = 32, 48 << 20
	s := largeStatus()
	socket := bounded(t, func(l *limits) { l.perUser, l.write = readers+1, time.Minute }, func(d *desk) {
		d.status = func() control.Status { return s }
	})
	before := heap()
	var held []net.Conn
	refused := 0
	for range readers {
		c, resp := stuck(t, socket, "/v1/status")
		switch resp.StatusCode {
		case http.StatusOK:
			held = append(held, c)
		case http.StatusServiceUnavailable:
			refused++
			if resp.Header.Get("Retry-After") == "" {
				t.Error("a refusal does not say when to retry")
			}
		default:
			t.Errorf("got %s", resp.Status)
		}
	}
	grown := heap() - before
	t.Logf("%d readers hold an answer, %d were refused, the heap has grown by %d KiB", len(held), refused, grown>>10)
	if grown > most {
		t.Errorf("the heap has grown by %d MiB, at most %d MiB were meant", grown>>20, most>>20)
	}
	if len(held) == 0 || refused == 0 {
		t.Errorf("%d readers hold an answer and %d were refused", len(held), refused)
	}
	if code, body := ask(t, socket, "GET", "/v1/checks", ""); code != http.StatusOK { // a small answer is never refused
		t.Errorf("a small answer: %d %s", code, body)
	}
	for _, c := range held {
		c.Close()
	}
	until(t, "the status is answered once the readers are gone", func() bool {
		_, err := control.Dial(socket).Status(t.Context())
		return err == nil
	})
}

// TestReadersOfOneRoundShareItsEncoding has clients that do not read, and one that does.
func TestReadersOfOneRoundShareItsEncoding(t *testing.T) {
	t.Parallel()
	s, asked := largeStatus(), atomic.Int64{}
	socket := bounded(t, func(l *limits) { l.write = time.Minute }, func(d *desk) {
		d.status = func() control.Status { asked.Add(1); return s }
		d.revision = func() uint64 { return 1 }
	})
	began := time.Now()
	for range 20 {
		if _, resp := stuck(t, socket, "/v1/status"); resp.StatusCode != http.StatusOK {
			t.Fatalf("got %s", resp.Status)
		}
	}
	if _, err := control.Dial(socket).Status(t.Context()); err != nil {
		t.Errorf("a reader that reads: %v", err)
	}
	if n, most := asked.Load(), 1+int64(time.Since(began)/statusFresh); n > most {
		t.Errorf("the status was made %d times for one round, at most %d were meant", n, most)
	}
	if status, _ := ask(t, socket, "PUT", "/v1/pause", `{"reason":"x"}`); status != http.StatusOK {
		t.Fatal(status)
	}
	n := asked.Load()
	if _, err := control.Dial(socket).Status(t.Context()); err != nil || asked.Load() == n {
		t.Errorf("after a change the status of before is sent (%v)", err)
	}
}

// TestUsersThatDoNotReadLeaveRoomForOthers exhausts one user's share, then the share of all users who may only read.
func TestUsersThatDoNotReadLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	s := newSending(200<<10, 500<<10)
	answer := func() *encoded { return &encoded{make([]byte, 100<<10)} }
	begin := func(e *encoded, uid uint32, want bool) func() {
		t.Helper()
		end, ok := s.begin(e, uid)
		if ok != want {
			t.Fatalf("user %d: got %v", uid, ok)
		}
		return end
	}
	shared := answer()
	var ends []func()
	for uid := range uint32(9) { // one answer counts once for all readers
		ends = append(ends, begin(shared, uid, true), begin(shared, uid, true))
	}
	ends = append(ends, begin(answer(), 1, true))
	begin(answer(), 1, false)
	ends = append(ends, begin(shared, 1, true), begin(answer(), 2, true), begin(answer(), 3, true))
	if s.full(4) {
		t.Error("it is full too early")
	}
	ends = append(ends, begin(answer(), 4, true))
	begin(answer(), 5, false)
	if !s.full(5) {
		t.Error("it is not full")
	}
	begin(&encoded{make([]byte, smallAnswer)}, 1, true)() // is not counted
	for _, end := range ends {
		end()
		end() // a second call does nothing
	}
	if s.all != 0 || len(s.users) != 0 || len(s.readers) != 0 {
		t.Errorf("left behind: %d bytes, %v, %v", s.all, s.users, s.readers)
	}
	begin(&encoded{make([]byte, 300<<10)}, 1, true) // the first one may be larger
}

// TestAnAnswerThatNoClientReadsIsRefused has a document over the limit.
func TestAnAnswerThatNoClientReadsIsRefused(t *testing.T) {
	t.Parallel()
	socket := bounded(t, func(*limits) {}, func(d *desk) {
		d.status = func() control.Status {
			return control.Status{Role: control.Role(strings.Repeat("x", control.MaxAnswer))}
		}
	})
	code, body := ask(t, socket, "GET", "/v1/status", "")
	if e := errorIn(t, body); code != http.StatusInternalServerError || !strings.Contains(e.Message, "the limit is") {
		t.Errorf("%d %s", code, body)
	}
}

func TestAnEmptyStatusHasEmptyListsAndNoAges(t *testing.T) {
	t.Parallel()
	socket := open(t, &desk{})
	code, body := ask(t, socket, "GET", "/v1/status", "")
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	for _, want := range []string{`"apiVersion":"v1"`, `"reasons":[]`, `"findings":[]`, `"members":[]`, `"hosts":[]`} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is missing in %s", want, body)
		}
	}
	for _, bad := range []string{"null", "ageSeconds", "p99Seconds", `"operation"`, `"pause"`} {
		if strings.Contains(body, bad) {
			t.Errorf("%s appears in %s", bad, body)
		}
	}
}

func TestANonFiniteNumberIsAnErrorAndNotHalfADocument(t *testing.T) {
	t.Parallel()
	socket := open(t, &desk{status: func() control.Status {
		var s control.Status
		s.Health.Disk.WAL.P99 = math.NaN()
		return s
	}})
	code, body := ask(t, socket, "GET", "/v1/status", "")
	if e := errorIn(t, body); code != http.StatusInternalServerError || e.Code != control.CodeInternal {
		t.Errorf("%d %s", code, body)
	}
}
