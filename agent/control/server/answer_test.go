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
	"github.com/quorumd/quorumd/agent/policy"
)

// readHeader requests a path and reads only the header of the answer.
func readHeader(t *testing.T, socket, path string) (net.Conn, *http.Response) {
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

func heapInUse() int64 {
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

// On 32 connections, one user requests a status of 4 MiB, each of a new round, and reads only the header of the answer.
// The test is not parallel because it measures the heap of the process.
func TestClientsThatDoNotReadUseLittleMemory(t *testing.T) {
	const readers, most = 32, 48 << 20
	s := largeStatus()
	socket := serveWithLimits(t, func(l *limits) { l.perUser, l.write = readers+1, time.Minute }, func(d *fake) {
		d.status = func() control.Status { return s }
	})
	before := heapInUse()
	var held []net.Conn
	refused := 0
	for range readers {
		c, resp := readHeader(t, socket, "/v1/status")
		switch resp.StatusCode {
		case http.StatusOK:
			held = append(held, c)
		case http.StatusServiceUnavailable:
			refused++
			if resp.Header.Get("Retry-After") == "" {
				t.Error("a refusal has no Retry-After")
			}
		default:
			t.Errorf("got %s", resp.Status)
		}
	}
	grown := heapInUse() - before
	t.Logf("%d unread answers, %d refusals, the heap has grown by %d KiB", len(held), refused, grown>>10)
	if grown > most {
		t.Errorf("the heap has grown by %d MiB, want at most %d MiB", grown>>20, most>>20)
	}
	if len(held) == 0 || refused == 0 {
		t.Errorf("%d unread answers and %d refusals, want some of each", len(held), refused)
	}
	// a small answer is never refused
	if code, body := call(t, socket, "GET", "/v1/checks", ""); code != http.StatusOK {
		t.Errorf("a small answer: %d %s", code, body)
	}
	for _, c := range held {
		c.Close()
	}
	eventually(t, "the status is answered after the connections are closed", func() bool {
		_, err := control.Dial(socket).Status(t.Context())
		return err == nil
	})
}

// Some clients do not read, and one does.
func TestReadersOfOneRoundShareItsEncoding(t *testing.T) {
	t.Parallel()
	s, calls := largeStatus(), atomic.Int64{}
	socket := serveWithLimits(t, func(l *limits) { l.write = time.Minute }, func(d *fake) {
		d.status = func() control.Status { calls.Add(1); return s }
		d.revision = func() uint64 { return 1 }
	})
	began := time.Now()
	for range 20 {
		if _, resp := readHeader(t, socket, "/v1/status"); resp.StatusCode != http.StatusOK {
			t.Fatalf("got %s", resp.Status)
		}
	}
	if _, err := control.Dial(socket).Status(t.Context()); err != nil {
		t.Errorf("a client that reads: %v", err)
	}
	if n, most := calls.Load(), 1+int64(time.Since(began)/statusMaxAge); n > most {
		t.Errorf("the status of one round was requested %d times, want at most %d", n, most)
	}
	if status, _ := call(t, socket, "PUT", "/v1/pause", `{"reason":"x"}`); status != http.StatusOK {
		t.Fatal(status)
	}
	n := calls.Load()
	if _, err := control.Dial(socket).Status(t.Context()); err != nil || calls.Load() == n {
		t.Errorf("after a change, the server sends the old status (%v)", err)
	}
}

// The test exhausts the limit of one user, then the limit of all users.
func TestUsersThatDoNotReadLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	limit := newTransit(200<<10, 500<<10)
	answer := func() *document { return &document{make([]byte, 100<<10)} }
	add := func(d *document, uid uint32, want bool) func() {
		t.Helper()
		remove, ok := limit.add(d, uid)
		if ok != want {
			t.Fatalf("user %d: got %v", uid, ok)
		}
		return remove
	}
	shared := answer()
	var added []func()
	for uid := range uint32(9) { // an answer with many readers counts once
		added = append(added, add(shared, uid, true), add(shared, uid, true))
	}
	added = append(added, add(answer(), 1, true))
	add(answer(), 1, false)
	added = append(added, add(shared, 1, true), add(answer(), 2, true), add(answer(), 3, true))
	if limit.isFull(4) {
		t.Error("transit is full too early")
	}
	added = append(added, add(answer(), 4, true))
	add(answer(), 5, false)
	if !limit.isFull(5) {
		t.Error("transit is not full")
	}
	add(&document{make([]byte, smallAnswer)}, 1, true)() // not counted
	for _, remove := range added {
		remove()
		remove() // a second call does nothing
	}
	if limit.total != 0 || len(limit.byUser) != 0 || len(limit.readers) != 0 {
		t.Errorf("left over: %d bytes, %v, %v", limit.total, limit.byUser, limit.readers)
	}
	add(&document{make([]byte, 300<<10)}, 1, true) // a user's only answer may be larger
}

func TestAnAnswerOverTheLimitIsAnError(t *testing.T) {
	t.Parallel()
	socket := serveWithLimits(t, func(*limits) {}, func(d *fake) {
		d.status = func() control.Status {
			return control.Status{Role: policy.Role(strings.Repeat("x", control.MaxAnswer))}
		}
	})
	code, body := call(t, socket, "GET", "/v1/status", "")
	if e := errorIn(t, body); code != http.StatusInternalServerError || !strings.Contains(e.Message, "the limit is") {
		t.Errorf("%d %s", code, body)
	}
}

func TestAnEmptyStatusHasEmptyListsAndNoAges(t *testing.T) {
	t.Parallel()
	socket := serveBackend(t, &fake{})
	code, body := call(t, socket, "GET", "/v1/status", "")
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

func TestAStatusThatCannotBeEncodedIsAnError(t *testing.T) {
	t.Parallel()
	socket := serveBackend(t, &fake{status: func() control.Status {
		var s control.Status
		s.Health.Disk.WAL.P99 = math.NaN()
		return s
	}})
	code, body := call(t, socket, "GET", "/v1/status", "")
	if e := errorIn(t, body); code != http.StatusInternalServerError || e.Code != control.CodeInternal {
		t.Errorf("%d %s", code, body)
	}
}
