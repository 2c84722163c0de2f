// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"math"
	"time"

	"github.com/quorumd/quorumd/agent/poll"
	"github.com/quorumd/quorumd/health"
)

// Source is a reading of this host for package health. [Reading] and [DeviceReading] declare sources.
type Source struct {
	fill func(ctx context.Context, now func() time.Duration, device uint64, in *health.Input)
	hung func(now time.Duration) bool
}

// Reading declares a source that fills a part of the input. The observer calls read in the background at the given
// interval. read may hang, and at most one call is in progress. Before the first reading the part stays unchanged. If
// the last reading is too old, the whole part is marked as not available, with outdated as the reason.
func Reading[T any](every time.Duration, outdated string, part func(*health.Input) *T, read func(context.Context) T,
) Source {
	return reading(every, outdated, part, func(ctx context.Context, _ uint64) T { return read(ctx) }, false)
}

// DeviceReading is like Reading, for a part that depends on the device of the file system that the probe writes to.
// read is not called while that device is unknown.
func DeviceReading[T any](every time.Duration, outdated string, part func(*health.Input) *T, read func(device uint64) T,
) Source {
	return reading(every, outdated, part, func(_ context.Context, device uint64) T { return read(device) }, true)
}

func reading[T any](every time.Duration, outdated string, part func(*health.Input) *T,
	read func(context.Context, uint64) T, ofDevice bool,
) Source {
	last := &poll.Poller[T]{}
	fill := func(ctx context.Context, now func() time.Duration, device uint64, in *health.Input) {
		to := part(in)
		if ofDevice && device == 0 {
			return
		}
		last.Refresh(ctx, now, every, lookTimeout, func(ctx context.Context) (T, error) {
			return read(ctx, device), nil
		})
		at := now()
		if seen, _, fresh := last.Get(at, maxAge*every); fresh {
			*to = seen
		} else if last.Age(at) < math.MaxInt64 {
			*to = health.NotAvailable[T](outdated)
		}
	}
	return Source{fill, last.Hung}
}
