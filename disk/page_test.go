// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func TestASampleArrivesAsItWasSent(t *testing.T) {
	t.Parallel()
	p := new(page)
	sent := []Sample{
		{Lane: LaneDirect, End: 5 * time.Hour, Latency: 123456789},
		{Lane: LaneWAL, End: 6 * time.Hour, Latency: 40 * time.Second, Contaminated: true, Errno: syscall.EIO},
	}
	for _, s := range sent {
		p.push(s)
	}
	got, lost, next := p.pull(0)
	if len(got) != 2 || got[0] != sent[0] || got[1] != sent[1] || lost != 0 || next != 2 {
		t.Errorf("pulled %+v, %d lost, next %d", got, lost, next)
	}
	if got, lost, next = p.pull(next); got != nil || lost != 0 || next != 2 {
		t.Errorf("pulled %+v, %d lost, next %d a second time", got, lost, next)
	}
}

func TestSamplesNotFetchedInTimeCountAsLost(t *testing.T) {
	t.Parallel()
	p := new(page)
	for i := range ringSize + 904 {
		p.push(Sample{End: time.Duration(i)})
	}
	got, lost, next := p.pull(0)
	if len(got) != ringSize || lost != 904 || next != ringSize+904 {
		t.Fatalf("pulled %d, %d lost, next %d", len(got), lost, next)
	}
	for i, s := range got {
		if s.End != time.Duration(904+i) {
			t.Fatalf("sample %d is %d", i, s.End)
		}
	}
}

// A reader that cannot keep up with the writer may miss samples, but must count those, and must never see one that was
// not sent.
func TestAReaderNeverSeesHalfASample(t *testing.T) {
	t.Parallel()
	const sent = 400_000
	p := new(page)
	var done atomic.Bool
	go func() {
		defer done.Store(true)
		for i := range time.Duration(sent) {
			p.push(Sample{End: i, Latency: 2 * i, Errno: syscall.Errno(i), Contaminated: i%2 == 1})
			p.fail(opWAL, syscall.Errno(i), i)
		}
	}()
	var next, seen, missed uint64
	for last := time.Duration(-1); ; {
		finished := done.Load()
		var got []Sample
		var lost uint64
		got, lost, next = p.pull(next)
		for _, s := range got {
			if s.Latency != 2*s.End || s.Errno != syscall.Errno(s.End) || s.Contaminated != (s.End%2 == 1) ||
				s.End <= last {
				t.Fatalf("%+v after %d", s, last)
			}
			last = s.End
		}
		seen, missed = seen+uint64(len(got)), missed+lost
		if count, errno, _, at := p.failure.get(); count != 0 && (errno != at || count != at+1) {
			t.Fatalf("failure %d has errno %d of moment %d", count, errno, at)
		}
		if finished {
			break
		}
	}
	if seen+missed != sent || seen == 0 {
		t.Errorf("%d seen and %d missed of %d", seen, missed, sent)
	}
}

func TestARecordBeingWrittenIsNotRead(t *testing.T) {
	t.Parallel()
	var r record
	r.put(7, 1, 2, 3)
	r.stamp.Store(0) // as left by a writer that was killed here
	r.a.Store(9)
	if stamp, _, _, _ := r.get(); stamp != 0 {
		t.Errorf("got stamp %d", stamp)
	}
}

func TestParentAndChildSeeOnePage(t *testing.T) {
	t.Parallel()
	file, mine, err := createPage()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	defer mine.unmap()
	theirs, err := openPage(file)
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.unmap()
	theirs.begin(opWAL, 1234567*time.Microsecond)
	if op, since := mine.current(); op != opWAL || since != 1234567*time.Microsecond {
		t.Errorf("in flight is %v since %v", op, since)
	}
	if err := file.Truncate(1); err == nil {
		t.Error("the page can be cut off under its readers")
	}
	mine.version.Store(pageVersion + 1)
	if _, err := openPage(file); err == nil {
		t.Error("a page of another version was opened")
	}
}
