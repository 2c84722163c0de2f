// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"time"
)

// transfer is a leadership transfer. Both leaders' writes are recorded for transferSpan, to judge whether the transfer
// was right.
type transfer struct {
	at       time.Duration
	from, to int
	left     []time.Duration // durations of the old leader's writes since the transfer, as on a follower
	took     []time.Duration // durations of the new leader's writes since the transfer, as on a follower
	text     string
}

// transferSpan is how long both leaders' writes are compared after a transfer.
const transferSpan = 10 * time.Minute

// isFalse reports whether the old leader's disk was at least about as fast as the new leader's, so that the transfer
// was not needed.
func (t *transfer) isFalse() bool {
	const ms = time.Millisecond
	oldMean, newMean := mean(t.left), mean(t.took)
	oldP99, newP99 := quantile(t.left, 0.99), quantile(t.took, 0.99)
	sameMean := float64(oldMean) < 1.3*float64(newMean) || oldMean-newMean < ms/2
	sameTail := float64(oldP99) < 1.5*float64(newP99) || oldP99-newP99 < 5*ms
	return sameMean && sameTail
}

func mean(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	var sum time.Duration
	for _, d := range all {
		sum += d
	}
	return sum / time.Duration(len(all))
}

// quantile returns the smallest duration that at least the given share of all durations does not exceed; 0 without
// durations.
func quantile(all []time.Duration, share float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	rank := int(share*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}
