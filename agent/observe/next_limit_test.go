// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/contrib/testbed"
	"github.com/quorumd/quorumd/systemd"
)

func TestTheLimitOfTheNextStartIsReadAlthoughThatOfTheProcessIsUnknown(t *testing.T) {
	t.Parallel()
	o := &Observer{opt: Options{
		Now:    func() time.Duration { return time.Hour },
		Config: config.Config{Timing: config.Timing{Interval: time.Second}},
		Sources: Sources{
			MaxLearners:     func(int) (int, error) { return 0, errors.New("unreadable") },
			NextMaxLearners: func(int) (int, string, error) { return 1, "/etc/etcd.env", nil },
		},
	}}
	want := round.NextLimit{Limit: 1, From: "/etc/etcd.env"}
	testbed.Eventually(t, time.Minute, "the limit is read", func() bool {
		r := &round.Round{Unit: systemd.Status{LoadState: "loaded", State: systemd.Active, PID: 42}}
		o.askMaxLearners(context.Background(), r)
		return r.NextLimit == want && r.MaxLearners == 0
	})
	r := &round.Round{Unit: systemd.Status{LoadState: "loaded", State: systemd.Active, PID: 43}}
	if o.askMaxLearners(t.Context(), r); r.NextLimit != (round.NextLimit{}) {
		t.Errorf("the limit of another process counts: %+v", r.NextLimit)
	}
}
