// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package qualify

import (
	"math"
	"slices"
	"time"
)

// spread holds latencies in ascending order.
type spread []time.Duration

func sorted(latencies []time.Duration) spread {
	slices.Sort(latencies)
	return latencies
}

// at returns a quantile: the smallest latency that this share of all latencies does not exceed; 0 without latencies.
func (s spread) at(share float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	rank := int(math.Ceil(share * float64(len(s))))
	return s[min(max(rank, 1), len(s))-1]
}

// doubt is the probability that the true value is outside of the interval, half of it on each side.
const doubt = 0.05

// within returns the interval that contains the true quantile with 95 % confidence. It uses only the order of the
// latencies and treats them as independent, so the number above the quantile has a binomial distribution. If there are
// too few latencies for an upper end, high is 0: for the 99th percentile, with fewer than 368.
func (s spread) within(share float64) (low, high time.Duration) {
	n := len(s)
	if n == 0 {
		return 0, 0
	}
	above := 1 - share
	// below is the probability that fewer than k latencies are above the quantile, and term is the logarithm of the
	// probability of exactly k. share^n is too small for a float64 if n is large.
	below, term := 0.0, float64(n)*math.Log1p(-above)
	odds := math.Log(above) - math.Log1p(-above)
	for k := 0; k < n; k++ {
		if k > 0 && below <= doubt/2 {
			high = s[n-k] // the k-th largest
		}
		below += math.Exp(term)
		if below >= 1-doubt/2 {
			return s[n-1-k], high
		}
		term += math.Log(float64(n-k)) - math.Log(float64(k+1)) + odds
	}
	return s[0], high
}

// Bin is part of a distribution: the number of latencies longer than the previous bin and at most UpTo.
type Bin struct {
	UpTo  float64 `json:"upToSeconds"`
	Count int     `json:"count"`
}

// bins returns the distribution from the shortest to the longest latency, with bounds in steps of the square root of
// two. Every second bound is a millisecond times a power of two, as in etcd's histograms.
func (s spread) bins() []Bin {
	var bins []Bin
	for i, j := 0, firstStep; i < len(s); j++ {
		bound := time.Duration(math.Round(float64(time.Millisecond) * math.Pow(2, float64(j)/2)))
		n := 0
		for ; i < len(s) && (s[i] <= bound || j == lastStep); i++ {
			n++
		}
		if n > 0 || len(bins) > 0 {
			bins = append(bins, Bin{UpTo: bound.Seconds(), Count: n})
		}
	}
	return bins
}

// The first and the last bound of bins: a microsecond and about half an hour.
const (
	firstStep = -20
	lastStep  = 42
)
