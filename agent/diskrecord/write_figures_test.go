// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package diskrecord

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

func TestWriteFiguresArePublishedOnlyOnRequestAndRarely(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := New()
	at := func(now, p50 time.Duration, tails int, asked bool) record.Host {
		a := health.Assessment{Writes: health.Writes{P50: p50, P90: 2 * p50, Tails: tails}}
		h := record.Host{WriteP50: 9, WriteP90: 9, WriteTails: 9, FiguresAt: begin}
		p.Set(&h, time.Hour+now, begin.Add(now), a, Asked{Figures: asked})
		return h
	}
	for name, h := range map[string]record.Host{
		"not requested": at(0, 4*ms, 0, false), "not measured": at(0, 0, 0, true),
	} {
		if h.WriteP50 != 0 || h.WriteP90 != 0 || h.WriteTails != 0 || !h.FiguresAt.IsZero() {
			t.Errorf("%s: %+v", name, h)
		}
	}
	first := at(time.Second, 4*ms, 1, true)
	if first.WriteP50 < 0.0036 || first.WriteP50 > 0.0044 || first.WriteP90 < 0.0072 || first.WriteTails != 1 {
		t.Errorf("4 ms is published as %+v", first)
	}
	if same := at(5*time.Minute, 6*ms, 3, true); same.FiguresAt != first.FiguresAt || same.WriteP50 != first.WriteP50 {
		t.Errorf("an increase by half is published as %g", same.WriteP50)
	}
	if twice := at(6*time.Minute, 8*ms, 1, true); twice.WriteP50 < 0.007 {
		t.Errorf("a doubled median is published as %g", twice.WriteP50)
	}
	writes, last := 0, time.Time{}
	for s := range 24 * 3600 { // a forged record requests figures forever, and the disk is erratic
		h := at(time.Hour+time.Duration(s)*time.Second, time.Duration(1+s%2*9)*ms, 0, true)
		if h.FiguresAt != last {
			writes, last = writes+1, h.FiguresAt
		}
	}
	const most = figuresBudget + 24*3
	if writes > most {
		t.Errorf("%d writes a day, want at most %d", writes, most)
	}
	writes = 0
	for s := range 24 * 3600 { // the request ends and begins again, so each answer is a first one
		h := at(25*time.Hour+time.Duration(s)*time.Second, 4*ms, 0, s%100 < 50)
		if h.FiguresAt != last {
			writes, last = writes+1, h.FiguresAt
		}
	}
	if writes > 2*most { // a publication and its removal are two writes
		t.Errorf("%d writes a day for requests that end and begin again, want at most %d", writes, 2*most)
	}
}
