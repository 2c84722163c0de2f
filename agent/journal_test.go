// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/publish"
	"github.com/quorumd/quorumd/agent/record"
)

// newTestJournal returns a journal and its etcd, which can be cut off.
func newTestJournal(t *testing.T) (*publish.Journal, *fleetEtcd) {
	t.Helper()
	var looked time.Duration
	// each reading of the clock is a second later
	return newJournalAt(t, func() time.Duration { looked += time.Second; return looked })
}

func newJournalAt(t *testing.T, now func() time.Duration) (*publish.Journal, *fleetEtcd) {
	t.Helper()
	c, err := config.Parse("test", fmt.Appendf(nil, fleetConfig, "a", "rack", 0))
	if err != nil {
		t.Fatal(err)
	}
	etcd := newFleetEtcd()
	opt := publish.Options{Config: c, Etcd: etcd.of("a"), Wall: time.Now, Logger: slog.New(slog.DiscardHandler)}
	opt.Now = now
	return publish.NewJournal(opt, record.KeysFor("test")), etcd
}

// stored returns the texts of the lines in etcd, in the order in which they are shown.
func stored(t *testing.T, etcd *fleetEtcd) (texts []string) {
	t.Helper()
	for _, l := range storedLines(t, etcd) {
		texts = append(texts, l.Text)
	}
	return texts
}

// storedLines returns the lines in etcd, in the order in which they are shown.
func storedLines(t *testing.T, etcd *fleetEtcd) (lines []record.Line) {
	t.Helper()
	etcd.mu.Lock()
	kvs := etcd.store.Prefix(record.KeysFor("test").History())
	etcd.mu.Unlock()
	for _, kv := range kvs {
		l, err := record.Decode[record.Line](kv.Value)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	return lines
}

// The agent restarts the member that is its own endpoint, so it cannot store the line about the restart at once.
func TestARefusedLineIsStoredInItsPlaceWhenEtcdAnswers(t *testing.T) {
	t.Parallel()
	j, etcd := newTestJournal(t)
	j.Write(t.Context(), 10, publish.Entry{Kind: "step", Code: "begin", Text: "begin"})
	etcd.cutOff(true)
	j.Write(t.Context(), 11, publish.Entry{Kind: "step", Code: "restart-unit", Text: "restarting etcd"})
	if !j.Waiting() {
		t.Fatal("the line is not kept")
	}
	j.Store(t.Context(), 12)
	etcd.cutOff(false)
	j.Write(t.Context(), 13, publish.Entry{Kind: "step", Code: "set-phase", Text: "back"}) // stores the earlier one too
	if got := stored(t, etcd); !slices.Equal(got, []string{"begin", "restarting etcd", "back"}) || j.Waiting() {
		t.Errorf("the stored lines are %q", got)
	}
	before := etcd.store.Revision()
	j.Write(t.Context(), 14, publish.Entry{Kind: "step", Code: "set-phase", Text: "back"})
	if etcd.store.Revision() != before {
		t.Error("a line equal to the last one is stored")
	}
}

func TestLinesOfAnOutageAreStoredAfterwardsAndOnlyOnce(t *testing.T) {
	t.Parallel()
	j, etcd := newTestJournal(t)
	j.Write(t.Context(), 10, publish.Entry{Kind: "step", Code: "take-down", Text: "stopping etcd"})
	etcd.cutOff(true)
	j.Note(0, publish.Entry{Kind: "step", Code: "start-unit", Text: "starting etcd"})
	j.Store(t.Context(), 20) // a failed attempt may have taken effect nevertheless
	etcd.cutOff(false)
	j.Store(t.Context(), 30)
	if got := stored(t, etcd); !slices.Equal(got, []string{"stopping etcd", "starting etcd"}) || j.Waiting() {
		t.Errorf("the stored lines are %q", got)
	}
	if key := string(etcd.store.Prefix("")[1].Key); key != record.KeysFor("test").HistoryLine(20, "id-a", 2) {
		t.Errorf("the second attempt has another key than the first: %s", key)
	}
}

func TestATooLongLineDoesNotBlockTheOthers(t *testing.T) {
	t.Parallel()
	j, etcd := newTestJournal(t)
	etcd.cutOff(true)
	j.Write(t.Context(), 10, publish.Entry{Kind: "step", Code: "begin", Text: "begin"})
	j.Write(t.Context(), 11, publish.Entry{Kind: "step", Code: "set-phase", Text: strings.Repeat("x", record.MaxBytes)})
	etcd.cutOff(false)
	j.Write(t.Context(), 12, publish.Entry{Kind: "step", Code: "set-phase", Text: "back"})
	got := stored(t, etcd)
	if len(got) != 3 || got[0] != "begin" || got[2] != "back" || !strings.HasSuffix(got[1], "x…") || j.Waiting() {
		t.Errorf("%d lines are stored, one is waiting: %v", len(got), j.Waiting())
	}
}

func TestTheNumberOfWaitingLinesIsBounded(t *testing.T) {
	t.Parallel()
	const kept = 50
	j, etcd := newTestJournal(t)
	etcd.cutOff(true)
	for i := range 3 * kept {
		j.Write(t.Context(), int64(i), publish.Entry{Kind: "step", Code: "code", Text: fmt.Sprint(i)})
	}
	etcd.cutOff(false)
	j.Store(t.Context(), 1000)
	if got := stored(t, etcd); len(got) != kept || got[kept-1] != fmt.Sprint(3*kept-1) {
		t.Errorf("%d lines are stored, the last is %q", len(got), got[len(got)-1])
	}
}

func TestAnOrderlyShutdownStoresAllLines(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		line := publish.Entry{Kind: "step", Code: "start-unit", Text: "starting etcd"}
		f.hosts["v1"].agent.publisher.Journal().Note(0, line)
		f.hosts["v1"].end()
		if got := stored(t, f.etcd); !slices.Contains(got, "starting etcd") {
			t.Errorf("the stored lines are %q", got)
		}
	})
}

func TestConcurrentReadsOfTheHistoryQueryEtcdOnce(t *testing.T) {
	t.Parallel()
	now := time.Minute
	j, etcd := newJournalAt(t, func() time.Duration { return now })
	asked := func() int {
		before := etcd.count()["a"].requests
		if _, err := j.Read(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		return etcd.count()["a"].requests - before
	}
	if first, again := asked(), asked(); first != 1 || again != 0 {
		t.Errorf("the first read made %d requests, the next %d", first, again)
	}
	j.Write(t.Context(), 10, publish.Entry{Kind: "step", Code: "begin", Text: "begin"})
	if after := asked(); after != 1 {
		t.Errorf("after this host has written another line, a read made %d requests", after)
	}
	now += time.Second
	if later := asked(); later != 1 {
		t.Errorf("a second later a read made %d requests", later)
	}
}
