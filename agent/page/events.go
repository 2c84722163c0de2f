// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
)

const (
	historyEvery   = 10 * time.Second       // minimum interval between two reads of the history
	historyWait    = 200 * time.Millisecond // how long a page request waits for the read
	historyTimeout = 5 * time.Second        // timeout of one read
	historyOld     = 30 * time.Second       // from this age on, the page shows how old the lines are
)

// history is the newest part of the cluster's history, from the last read that returned lines. If err is
// [control.ErrNotNewest], these are only the lines that quorumd on this host has written since its start.
type history struct {
	lines []control.HistoryLine
	err   error     // the error of the last read
	at    time.Time // when the lines were read; zero before the first read
}

// historyReader reads the history for the page. Only one read runs at a time: while etcd hangs, the page shows the last
// lines read. It is not safe for concurrent use.
type historyReader struct {
	source  Source
	last    history
	next    time.Time    // earliest time of the next read
	running chan history // receives the result of the running read; nil if none runs
}

// current returns the history. It starts a new read if one is due, and waits for it only briefly.
func (h *historyReader) current(ctx context.Context) history {
	if now := time.Now(); h.running == nil && !now.Before(h.next) {
		result := make(chan history, 1)
		h.running, h.next = result, now.Add(historyEvery)
		go func() {
			// The read continues if the viewer disconnects.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), historyTimeout)
			defer cancel()
			lines, err := h.source.History(ctx, mostEvents)
			result <- history{lines, err, time.Now()}
		}()
	}
	if h.running == nil {
		return h.last
	}
	timer := time.NewTimer(historyWait)
	defer timer.Stop()
	select {
	case got := <-h.running:
		if got.err != nil && !errors.Is(got.err, control.ErrNotNewest) {
			got.lines, got.at = h.last.lines, h.last.at
		}
		h.last, h.running = got, nil
	case <-timer.C:
	}
	return h.last
}

// eventRow is a line of the history.
type eventRow struct {
	Time, Host, Text string
	Code             display.Styled
	Runbook          string // path of the code's runbook; empty if there is none
}

// eventsOf returns the last lines of the history, newest first, and a note if they are old or incomplete. Before the
// first read it returns neither.
func eventsOf(h history, about About, now time.Time) (rows []eventRow, note string) {
	for _, l := range slices.Backward(h.lines[max(0, len(h.lines)-mostEvents):]) {
		rows = append(rows, eventRow{
			Time: display.Timestamp(l.Time), Host: cell(l.HostName), Text: short(l.Text, mostEventRunes),
			Code: display.Styled{Text: cell(l.Code), Tone: display.EventTone(l.Kind)}, Runbook: about.runbook(l.Code),
		})
	}
	age := now.Sub(h.at)
	switch {
	case errors.Is(h.err, control.ErrNotNewest):
		note = "No voter answers: only events of this host since the start of quorumd are listed."
	case h.err != nil:
		// most errors already begin with these words
		why := strings.TrimPrefix(h.err.Error(), "cannot read the history")
		note = cut("Cannot read the history: " + strings.TrimLeft(why, ":\n "))
	case h.at.IsZero():
		return nil, ""
	case len(rows) == 0:
		note = "No events yet."
	}
	if !h.at.IsZero() && age >= historyOld {
		note = strings.TrimSpace(note + " Read " + display.Span(age) + " ago.")
	}
	return rows, note
}
