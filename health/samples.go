// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorumd/quorumd/disk"
)

// samples are writes in the order of their completion.
type samples []disk.Sample

// last returns the newest n samples, or all if there are fewer.
func (s samples) last(n int) samples { return s[max(0, len(s)-n):] }

// since returns the samples that were completed at the given time or later.
func (s samples) since(at time.Duration) samples {
	i, _ := slices.BinarySearchFunc(s, at, func(one disk.Sample, at time.Duration) int {
		return cmp.Compare(one.End, at)
	})
	return s[i:]
}

// over returns how many samples took longer than the limit.
func (s samples) over(limit time.Duration) int {
	n := 0
	for _, one := range s {
		if one.Latency > limit {
			n++
		}
	}
	return n
}

// streak returns the newest consecutive samples of a lane that took longer than the limit, the newest first.
func (s samples) streak(lane disk.Lane, limit time.Duration) samples {
	var streak samples
	for _, one := range slices.Backward(s) {
		if one.Lane != lane {
			continue
		}
		if one.Latency <= limit {
			break
		}
		streak = append(streak, one)
	}
	return streak
}

// max returns the longest latency; 0 without samples.
func (s samples) max() time.Duration {
	longest := time.Duration(0)
	for _, one := range s {
		longest = max(longest, one.Latency)
	}
	return longest
}

// mean returns the mean latency; 0 without samples.
func (s samples) mean() time.Duration {
	if len(s) == 0 {
		return 0
	}
	sum := time.Duration(0)
	for _, one := range s {
		sum += one.Latency
	}
	return sum / time.Duration(len(s))
}

// spread returns the latencies, the shortest first.
func (s samples) spread() spread {
	sorted := make(spread, len(s))
	for i, one := range s {
		sorted[i] = one.Latency
	}
	slices.Sort(sorted)
	return sorted
}

// keep returns the newest n samples. It overwrites s.
func (s samples) keep(n int) samples { return slices.Delete(s, 0, max(0, len(s)-n)) }

// spread contains latencies, the shortest first.
type spread []time.Duration

// at returns a quantile in thousandths (990 for the 99th percentile): the smallest measured latency that this share of
// all latencies does not exceed; 0 without latencies.
func (s spread) at(perMille int) time.Duration {
	if len(s) == 0 {
		return 0
	}
	rank := (len(s)*perMille + 999) / 1000
	return s[max(0, rank-1)]
}

// insert returns the latencies with one added.
func (s spread) insert(d time.Duration) spread {
	i, _ := slices.BinarySearch(s, d)
	return slices.Insert(s, i, d)
}

// remove returns the latencies without one of the given duration.
func (s spread) remove(d time.Duration) spread {
	if i, has := slices.BinarySearch(s, d); has {
		return slices.Delete(s, i, i+1)
	}
	return s
}
