// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/page"
)

// eventsIn returns the event section of a page; "" if it has none.
func eventsIn(text string) string {
	_, text, _ = strings.Cut(text, "<h2>Recent events</h2>")
	text, _, _ = strings.Cut(text, "</section>")
	return text
}

// talkative is a source whose history returns more lines than requested.
type talkative struct{ seen }

func (s talkative) History(context.Context, int) ([]control.HistoryLine, error) {
	return s.lines, s.err
}

func TestTenNewestEventsAreShownNewestFirst(t *testing.T) {
	t.Parallel()
	s := statusOf(t, "steady")
	of := talkative{seen{status: s}}
	for i := range 1000 {
		of.lines = append(of.lines, control.HistoryLine{
			Time: s.Time, HostName: "n1", Kind: "step", Code: "promote", Text: fmt.Sprintf("event-%03d", i),
		})
	}
	got := eventsIn(body(t, handler(t, of)))
	if n := strings.Count(got, "event-"); n != 10 {
		t.Errorf("%d events are shown", n)
	}
	newest, oldest := strings.Index(got, "event-999"), strings.Index(got, "event-990")
	if newest < 0 || oldest < newest {
		t.Errorf("the order is wrong: %s", got)
	}
}

func TestLongEventIsTruncated(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("<\x1b[2J\u202e", 10_000)
	got := eventsIn(body(t, handler(t, seen{
		status: statusOf(t, "steady"),
		lines:  []control.HistoryLine{{HostName: long, Kind: long, Code: long, Text: long}},
	})))
	if len(got) > 5000 || strings.Count(got, "…") != 3 || strings.ContainsAny(got, "\x1b\u202e") {
		t.Errorf("%d bytes: %q", len(got), got[:min(len(got), 5000)])
	}
}

func TestPageSaysWhyEventsAreMissing(t *testing.T) {
	t.Parallel()
	line := []control.HistoryLine{{HostName: "n1", Text: "the only one"}}
	for _, c := range []struct {
		lines []control.HistoryLine
		err   error
		want  []string
	}{
		{nil, nil, []string{"No events yet."}},
		{nil, errors.New("permission <denied>"), []string{"Cannot read the history: permission &lt;denied&gt;"}},
		{line, control.ErrNotNewest, []string{"No voter answers: ", "the only one"}},
		{line, nil, []string{"the only one", "quorumctl history"}},
	} {
		got := eventsIn(body(t, handler(t, seen{status: statusOf(t, "steady"), lines: c.lines, err: c.err})))
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%v, %v: %q is missing in %s", c.lines, c.err, want, got)
			}
		}
	}
}

func TestSnapshotNamesAreShortenedOutsideOfRemedies(t *testing.T) {
	t.Parallel()
	const name = "0000000000000004711-20261123T115959Z-host-4.example.org-0123456789abcdef"
	s := statusOf(t, "steady")
	s.Health.Findings = []control.Finding{{
		Code: "X", State: "WARM", Text: "the restore of " + name + " failed (" + name + ")",
		Remedy: "run snapshot open " + name,
	}}
	got := body(t, handler(t, seen{status: s, lines: []control.HistoryLine{{Text: "snapshot " + name + ", 3 keys"}}}))
	short := `<span title="` + name + `">4711-20261123T115959Z…</span>`
	for _, want := range []string{
		"the restore of " + short + " failed (" + short + ")", "snapshot " + short + ", 3 keys",
		"run snapshot open " + name,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %s", want, got)
		}
	}
}

// hanging is a source whose history hangs while hung is set.
type hanging struct {
	seen

	hung  *atomic.Bool
	reads *atomic.Int32
}

func (h hanging) History(ctx context.Context, limit int) ([]control.HistoryLine, error) {
	h.reads.Add(1)
	if h.hung.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.seen.History(ctx, limit)
}

func TestPageIsServedWithTheLastEventsWhileEtcdHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lines := []control.HistoryLine{{HostName: "n1", Text: "read before"}}
		of := hanging{seen{status: statusOf(t, "steady"), lines: lines}, &atomic.Bool{}, &atomic.Int32{}}
		h := handler(t, of)
		of.hung.Store(true)
		began := time.Now()
		if got := body(t, h); strings.Contains(got, "Recent events") {
			t.Errorf("events are shown before the first read: %s", eventsIn(got))
		}
		if took := time.Since(began); took > 200*time.Millisecond {
			t.Errorf("the first viewer waited for %s", took)
		}
		<-time.After(6 * time.Second)
		if got := eventsIn(body(t, h)); !strings.Contains(got, "Cannot read the history: context deadline exceeded") {
			t.Errorf("after a failed read: %s", got)
		}
		of.hung.Store(false)
		<-time.After(10 * time.Second)
		if got := eventsIn(body(t, h)); !strings.Contains(got, "read before") || strings.Contains(got, "Cannot") {
			t.Errorf("after a good read: %s", got)
		}
		of.hung.Store(true)
		for range 40 {
			<-time.After(time.Second)
			body(t, h)
		}
		got := eventsIn(body(t, h))
		if !strings.Contains(got, "read before") || !strings.Contains(got, "Read 4") {
			t.Errorf("while etcd hangs: %s", got)
		}
		if n := of.reads.Load(); n > 7 {
			t.Errorf("%d reads in a minute", n)
		}
		<-time.After(10 * time.Second) // the last read ends
	})
}

func handler(t *testing.T, of page.Source) http.Handler {
	t.Helper()
	h, err := page.New(of, page.About{Runbooks: runbooks})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func body(t *testing.T, h http.Handler) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	return w.Body.String()
}
