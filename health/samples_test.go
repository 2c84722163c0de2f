// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/quorumd/quorumd/disk"
)

func TestAPercentileIsTheSmallestSufficientMeasuredValue(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var s samples
		for range 1 + random.IntN(400) {
			s = append(s, disk.Sample{Latency: time.Duration(random.IntN(50))})
		}
		for _, perMille := range []int{500, 990, 999, 1000} {
			got := s.spread().at(perMille)
			under := func(limit time.Duration) int { return 1000 * (len(s) - s.over(limit)) }
			if under(got) < perMille*len(s) || under(got-1) >= perMille*len(s) ||
				!slices.ContainsFunc(s, func(one disk.Sample) bool { return one.Latency == got }) {
				t.Fatalf("%d per mille of %v is %d", perMille, s.spread(), got)
			}
		}
	}
	if (spread{}).at(990) != 0 {
		t.Error("the percentile of nothing is not 0")
	}
}

func TestDurationsAndSizesAreFormatted(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0 s", 850 * time.Microsecond: "850 µs", 2130 * time.Microsecond: "2.13 ms", 48 * ms: "48 ms",
		182400 * time.Microsecond: "182 ms",
		1300 * ms:                 "1.3 s", 34 * time.Second: "34 s", 90 * time.Second: "90 s",
		15 * time.Minute: "15 min",
		4 * time.Hour:    "4 h", 90 * time.Minute: "90 min",
	} {
		if got := show(d); got != want {
			t.Errorf("%d ns is shown as %q, want %q", d, got, want)
		}
	}
	for n, want := range map[uint64]string{
		0: "0 B", 1023: "1023 B", 1 << 30: "1 GiB", 3 << 29: "1.5 GiB",
		700 << 20: "700 MiB",
	} {
		if got := showBytes(n); got != want {
			t.Errorf("%d bytes are shown as %q, want %q", n, got, want)
		}
	}
}

func TestLatenciesStaySortedWhileSamplesComeAndGo(t *testing.T) {
	t.Parallel()
	var kept samples
	var sorted spread
	for i := range 1000 {
		one := disk.Sample{Latency: time.Duration(i*i*7919%101) * ms}
		kept, sorted = append(kept, one), sorted.insert(one.Latency)
		if len(kept) > 30 {
			sorted = sorted.remove(kept[0].Latency)
			kept = kept.keep(30)
		}
		if !slices.Equal(sorted, kept.spread()) {
			t.Fatalf("after %d samples: %v, want %v", i+1, sorted, kept.spread())
		}
	}
}
