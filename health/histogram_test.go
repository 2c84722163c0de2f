// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"
	"time"
)

// histogramOf gives a histogram with bounds of 1, 2 and 4 ms.
func histogramOf(sum float64, counts ...uint64) Histogram {
	return Histogram{Known: true, Bounds: []float64{0.001, 0.002, 0.004}, Counts: counts, Sum: sum}
}

func TestAHistogramTellsInWhichBucketAQuantileLies(t *testing.T) {
	t.Parallel()
	h := histogramOf(0.2, 90, 9, 0, 1)
	for perMille, want := range map[int]Bucket{
		500: {0, ms}, 900: {0, ms}, 901: {ms, 2 * ms}, 990: {ms, 2 * ms}, 991: {4 * ms, 0}, 1000: {4 * ms, 0},
	} {
		if got, some := h.Quantile(perMille); !some || got != want {
			t.Errorf("%d of a thousand: %+v, %v; want %+v", perMille, got, some, want)
		}
	}
	if h.Count() != 100 || h.Mean() != 2*ms || h.Beyond(2*ms) != 1 || h.Beyond(time.Millisecond) != 10 {
		t.Errorf("count %d, mean %s, beyond %d and %d", h.Count(), h.Mean(), h.Beyond(2*ms), h.Beyond(ms))
	}
	if _, some := (Histogram{}).Quantile(990); some || (Histogram{}).Mean() != 0 {
		t.Error("nothing has a quantile")
	}
}

func TestWhatWasCountedBetweenTwoLooksIsNotToldOverARestart(t *testing.T) {
	t.Parallel()
	before := histogramOf(0.1, 10, 5, 0, 0)
	got, told := histogramOf(0.16, 40, 6, 0, 1).Delta(before)
	if !told || got.Count() != 32 || got.Counts[0] != 30 || got.Counts[3] != 1 || got.Mean() != 1875*time.Microsecond {
		t.Errorf("grown by %+v, %v", got, told)
	}
	other := histogramOf(0, 50, 50, 50, 50)
	other.Bounds = []float64{0.001, 0.002, 0.005}
	for what, now := range map[string]Histogram{
		"began anew":   histogramOf(0, 11, 4, 9, 9),
		"other bounds": other,
		"not known":    {},
	} {
		if _, told := now.Delta(before); told {
			t.Errorf("%s: something is told", what)
		}
	}
	if _, told := before.Delta(Histogram{}); told {
		t.Error("what was counted before the first look is taken for new")
	}
}
