// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"time"
)

// Recent keeps earlier readings of a histogram that only grows, to calculate its recent growth.
type Recent struct {
	at   []time.Duration // times of the readings, oldest first
	seen []Histogram
}

// recentKept bounds the number of readings.
const recentKept = 64

// Take adds a reading. It returns the growth, and the time in which it occurred, since the last reading that is at
// least a span old, or else since the first reading. A histogram that is unknown or has restarted from zero discards
// all earlier readings. Adding the same reading again changes nothing.
func (k *Recent) Take(at time.Duration, now Histogram, span time.Duration) (grown Histogram, over time.Duration) {
	if !now.Known {
		k.at, k.seen = nil, nil
		return Histogram{}, 0
	}
	if n := len(k.at); n > 0 {
		if _, same := now.Delta(k.seen[n-1]); !same { // the counts have restarted, with a new etcd process
			k.at, k.seen = nil, nil
		}
	}
	// keep few readings, however often Take is called
	if n := len(k.at); n == 0 || at-k.at[n-1] >= span/(recentKept-2) {
		k.at, k.seen = append(k.at, at), append(k.seen, now)
	}
	for len(k.at) > 2 && at-k.at[1] >= span || len(k.at) > recentKept {
		k.at, k.seen = slices.Delete(k.at, 0, 1), slices.Delete(k.seen, 0, 1)
	}
	grown, _ = now.Delta(k.seen[0])
	return grown, at - k.at[0]
}
