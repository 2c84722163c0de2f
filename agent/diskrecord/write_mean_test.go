// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package diskrecord

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

func TestWriteDurationsArePublishedOnlyOnRequestAndChangeRarely(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := New()
	at := func(now, mean time.Duration, asked bool, want, measured time.Duration) {
		t.Helper()
		a := health.Assessment{Writes: health.Writes{Least: mean / 2, Most: mean}}
		h := record.Host{WriteMean: 9, WritesAt: begin}
		p.Set(&h, time.Hour+now, begin.Add(now), a, Asked{Mean: asked})
		var since time.Duration
		if !h.WritesAt.IsZero() {
			since = h.WritesAt.Sub(begin)
		}
		got := time.Duration(h.WriteMean * float64(time.Second))
		if got < want || float64(got) > float64(want)*1.4143 || want == 0 && got != 0 || since != measured {
			t.Errorf("after %s a mean of %s is published as %s, measured after %s; "+
				"want %s or up to half an octave more, %s", now, mean, got, since, want, measured)
		}
	}
	at(0, 4*ms, false, 0, 0)
	at(0, 0, true, 0, 0) // the mean is not measured yet
	at(0, 4*ms, true, 4*ms, 0)
	at(9*time.Second, 8*ms, true, 4*ms, 0)
	at(10*time.Second, 8*ms, true, 8*ms, 10*time.Second)
	at(69*time.Second, 8*ms, true, 8*ms, 10*time.Second)
	at(10*time.Minute, 8*ms, true, 8*ms, 10*time.Second)
	at(610*time.Second, 8*ms, true, 8*ms, 610*time.Second) // unchanged, but the published mean is old
	at(620*time.Second, 8*ms, false, 0, 0)
	at(621*time.Second, ms, true, ms, 621*time.Second)
}
