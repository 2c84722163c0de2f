// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "testing"

// histogramOf returns a histogram with bounds of 1, 2 and 4 ms.
func histogramOf(counts ...uint64) Histogram {
	return Histogram{Known: true, Bounds: []float64{0.001, 0.002, 0.004}, Counts: counts}
}

func TestQuantileReturnsItsBucket(t *testing.T) {
	t.Parallel()
	h := histogramOf(90, 9, 0, 1)
	for perMille, want := range map[int]Bucket{
		500: {0, ms}, 900: {0, ms}, 901: {ms, 2 * ms}, 990: {ms, 2 * ms}, 991: {4 * ms, 0}, 1000: {4 * ms, 0},
	} {
		if got, some := h.Quantile(perMille); !some || got != want {
			t.Errorf("%d of a thousand: %+v, %v; want %+v", perMille, got, some, want)
		}
	}
	if h.Count() != 100 {
		t.Errorf("count %d", h.Count())
	}
	if _, some := (Histogram{}).Quantile(990); some {
		t.Error("nothing has a quantile")
	}
}

func TestDeltaIsUnknownAcrossARestart(t *testing.T) {
	t.Parallel()
	before := histogramOf(10, 5, 0, 0)
	got, known := histogramOf(40, 6, 0, 1).Delta(before)
	if !known || got.Count() != 32 || got.Counts[0] != 30 || got.Counts[3] != 1 {
		t.Errorf("grown by %+v, %v", got, known)
	}
	other := histogramOf(50, 50, 50, 50)
	other.Bounds = []float64{0.001, 0.002, 0.005}
	for what, now := range map[string]Histogram{
		"restarted":    histogramOf(11, 4, 9, 9),
		"other bounds": other,
		"not known":    {},
	} {
		if _, known := now.Delta(before); known {
			t.Errorf("%s: the delta is known", what)
		}
	}
	if _, known := before.Delta(Histogram{}); known {
		t.Error("counts before the first reading are taken for new")
	}
}
