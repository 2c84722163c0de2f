// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"time"
)

// Recent keeps what a histogram that only grows has lately been, to tell what has come to it.
type Recent struct {
	at   []time.Duration // of the looks, oldest first
	seen []Histogram
}

// recentKept bounds what is kept.
const recentKept = 64

// Take takes what was seen at a moment, and gives what has come since the last look that is a span old, or since the
// first one, and how long ago that was. A histogram that is not known, or counts from zero again, begins anew. A look
// that was taken already changes nothing.
func (k *Recent) Take(at time.Duration, now Histogram, span time.Duration) (grown Histogram, over time.Duration) {
	if !now.Known {
		k.at, k.seen = nil, nil
		return Histogram{}, 0
	}
	if n := len(k.at); n > 0 {
		if _, same := now.Delta(k.seen[n-1]); !same { // another etcd
			k.at, k.seen = nil, nil
		}
	}
	if n := len(k.at); n == 0 || at-k.at[n-1] >= span/(recentKept-2) { // however often it is looked at
		k.at, k.seen = append(k.at, at), append(k.seen, now)
	}
	for len(k.at) > 2 && at-k.at[1] >= span || len(k.at) > recentKept {
		k.at, k.seen = slices.Delete(k.at, 0, 1), slices.Delete(k.seen, 0, 1)
	}
	grown, _ = now.Delta(k.seen[0])
	return grown, at - k.at[0]
}
