// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/health"
)

// learning returns a new judge that keeps its history in dir, a directory of a real file system.
func learning(t *testing.T, dir string) *judge {
	t.Helper()
	files, err := hoststate.Open(hoststate.HostFiles{}, dir+"/state", dir+"/run", nil)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	now := func() time.Duration { return time.Hour + time.Since(began) }
	learner, err := health.New(health.DefaultThresholds())
	if err != nil {
		t.Fatal(err)
	}
	j := &judge{
		opt: Options{Local: files, Logger: slog.New(slog.DiscardHandler), Now: now, Monotonic: now},
		log: slog.New(slog.DiscardHandler), now: now, health: learner,
	}
	j.loadHistory()
	return j
}

// learned returns a history with the given number of measured minutes.
func learned(minutes int) health.History {
	var h health.History
	for i := range minutes {
		h.Add(time.Date(2026, 11, 24, 3, i, 0, 0, time.UTC), time.Millisecond, time.Millisecond)
	}
	return h
}

// minutesOf returns how many measured minutes a new judge loads from a directory.
func minutesOf(t *testing.T, dir string) int {
	t.Helper()
	data, err := learning(t, dir).health.History()
	if err != nil {
		t.Fatal(err)
	}
	h, err := health.DecodeHistory(data)
	if err != nil {
		t.Fatal(err)
	}
	minutes := 0
	for _, day := range h.Days {
		for _, n := range day.Minutes {
			minutes += n
		}
	}
	return minutes
}

func TestAStoppingAgentSavesTheHistoryOfItsDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := learning(t, dir)
	j.health.UseHistory(learned(7))
	j.saveHistoryLast(t.Context())
	if got := minutesOf(t, dir); got != 7 {
		t.Errorf("the next agent knows %d of 7 minutes", got)
	}
}

func TestTheHistoryOfTheDiskIsSavedEveryTenMinutes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		j := learning(t, dir)
		j.health.UseHistory(learned(7))
		for _, step := range []struct {
			after time.Duration
			want  int
		}{{0, 0}, {historyEvery - time.Second, 0}, {time.Second, 7}} {
			<-time.After(step.after) // virtual time
			j.saveHistory(t.Context())
			synctest.Wait()
			if got := minutesOf(t, dir); got != step.want {
				t.Errorf("%s later the file has %d minutes, want %d", step.after, got, step.want)
			}
		}
	})
}
