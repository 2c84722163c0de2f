// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"time"
)

// Recent keeps earlier readings of a histogram that only grows, to calculate its recent growth.
type Recent struct {
	at   []time.Duration // of the readings, oldest first
	seen []Histogram
}

// recentKept bounds the readings.
const recentKept = 64

// Take adds a reading. It returns the growth since the last reading that is at least a span old, or else since the
// first one, and over how long. A histogram that is unknown, or counts from zero again, restarts it. A reading that was
// taken already changes nothing.
func (k *Recent) Take(at time.Duration, now Histogram, span time.Duration) (grown Histogram, over time.Duration) {
	if !now.Known {
		k.at, k.seen = nil, nil
		return Histogram{}, 0
	}
	if n := len(k.at); n > 0 {
		if _, same := now.Delta(k.seen[n-1]); !same { // another etcd process
			k.at, k.seen = nil, nil
		}
	}
	if n := len(k.at); n == 0 || at-k.at[n-1] >= span/(recentKept-2) { // however often Take is called
		k.at, k.seen = append(k.at, at), append(k.seen, now)
	}
	for len(k.at) > 2 && at-k.at[1] >= span || len(k.at) > recentKept {
		k.at, k.seen = slices.Delete(k.at, 0, 1), slices.Delete(k.seen, 0, 1)
	}
	grown, _ = now.Delta(k.seen[0])
	return grown, at - k.at[0]
}
