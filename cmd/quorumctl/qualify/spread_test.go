// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package qualify

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// ladder returns the latencies 1 µs, 2 µs … n µs, longest first.
func ladder(n int) []time.Duration {
	var out []time.Duration
	for i := n; i > 0; i-- {
		out = append(out, time.Duration(i)*time.Microsecond)
	}
	return out
}

func TestPercentileIsAMeasuredLatency(t *testing.T) {
	t.Parallel()
	s := sorted(ladder(1000))
	for share, want := range map[float64]int64{0.5: 500, 0.9: 900, 0.99: 990, 0.999: 999, 1: 1000} {
		if got := s.at(share); got.Microseconds() != want {
			t.Errorf("%g: %s, want %d µs", share, got, want)
		}
	}
	if got := sorted(nil).at(0.99); got != 0 {
		t.Errorf("without latencies: %s", got)
	}
}

func TestTooFewWritesHaveNoUpperEnd(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int64{0: 0, 1: 0, 367: 0, 368: 368, 400: 400} { // 0.99^368 < 0.025
		if _, high := sorted(ladder(n)).within(0.99); high.Microseconds() != want {
			t.Errorf("%d writes: %s", n, high)
		}
	}
	if low, _ := sorted(ladder(11)).within(0.99); low != 10*time.Microsecond {
		t.Errorf("the lower end of 11 writes is %s", low)
	}
}

func TestIntervalContainsTheTrueQuantileWithItsConfidence(t *testing.T) {
	t.Parallel()
	// The 99th percentile of an exponential distribution with a mean of one millisecond is ln 100 milliseconds.
	truth := time.Duration(math.Log(100) * float64(time.Millisecond))
	random := rand.New(rand.NewPCG(1, 2))
	const rounds = 2000
	held := 0
	for range rounds {
		latencies := make([]time.Duration, 1500)
		for i := range latencies {
			latencies[i] = time.Duration(random.ExpFloat64() * float64(time.Millisecond))
		}
		if low, high := sorted(latencies).within(0.99); low <= truth && truth <= high {
			held++
		}
	}
	if held < rounds*95/100 || held > rounds*99/100 {
		t.Errorf("%d of %d intervals contain the quantile", held, rounds)
	}
}

func TestManyWritesHaveANarrowInterval(t *testing.T) {
	t.Parallel()
	low, high := sorted(ladder(mostWrites)).within(0.99)
	truth := 0.99 * mostWrites * float64(time.Microsecond)
	if float64(low) > truth || float64(high) < truth || float64(high-low) > truth/1000 {
		t.Errorf("%s to %s", low, high)
	}
}

func TestEveryWriteIsInOneBin(t *testing.T) {
	t.Parallel()
	latencies := []time.Duration{
		1, time.Microsecond, 20 * time.Microsecond, time.Millisecond, time.Millisecond + 1, time.Second, 3 * time.Hour,
	}
	sum, before := 0, 0.0
	for _, b := range sorted(latencies).bins() {
		if b.UpTo <= before {
			t.Errorf("%g comes after %g", b.UpTo, before)
		}
		for _, l := range latencies {
			if in := l.Seconds() > before && l.Seconds() <= b.UpTo; in && b.Count == 0 {
				t.Errorf("%s is not in the bin up to %g", l, b.UpTo)
			}
		}
		sum, before = sum+b.Count, b.UpTo
	}
	if sum != len(latencies) {
		t.Errorf("%d of %d", sum, len(latencies))
	}
	if bins := sorted(nil).bins(); len(bins) != 0 {
		t.Errorf("without latencies: %v", bins)
	}
}
