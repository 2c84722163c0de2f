// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"errors"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/contrib/testbed"
)

func TestTheClockOffsetFollowsTheWallClock(t *testing.T) {
	t.Parallel()
	etcd := testbed.StartCluster(t, 1, quick())
	c := connect(t, noListener(t), etcd.Endpoints()[0])
	for _, shift := range []time.Duration{0, time.Hour, -time.Hour} {
		got, err := c.ClockOffset(within(t), func() time.Time { return time.Now().Add(shift) })
		if err != nil || (got-shift).Abs() > 2*time.Second {
			t.Errorf("a clock that is off by %v: got %v, %v", shift, got, err)
		}
	}
}

func TestWithoutAMemberThereIsNoClock(t *testing.T) {
	t.Parallel()
	c := connect(t, noListener(t), noListener(t))
	if got, err := c.ClockOffset(within(t), time.Now); !errors.Is(err, cluster.ErrNoClock) {
		t.Errorf("got %v, %v", got, err)
	}
}
