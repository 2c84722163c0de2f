// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/publish"
	"github.com/quorumd/quorumd/agent/record"
)

// The client connects to a voter, then to a spare of a large fleet. The spare queries etcd at long intervals.
func TestTheNextReadShowsAChangeJustMade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 20, smallPace())
		defer f.close()
		f.settled()
		for _, name := range []string{"v1", "s0007"} {
			a := f.hosts[name].agent
			soon := func() {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				if err := a.ProbeNow(ctx); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			if _, err := a.Pause(t.Context(), control.PauseRequest{Reason: "a look", For: control.Duration(time.Hour)},
				"root"); err != nil {
				t.Fatal(err)
			}
			if soon(); a.Status().Pause == nil {
				t.Errorf("%s does not show the pause", name)
			}
			if err := a.Resume(t.Context(), "root"); err != nil {
				t.Fatal(err)
			}
			if soon(); a.Status().Pause != nil {
				t.Errorf("%s still shows the pause", name)
			}
			r, err := a.StartRollout(t.Context(), control.RolloutRequest{
				Work: policy.WorkReboot, Reason: "a test",
				Hosts: []string{"s0003"},
			}, "root")
			if err != nil {
				t.Fatal(err)
			}
			if soon(); a.Status().Rollout == nil || a.Status().Rollout.ID != r.ID {
				t.Errorf("%s shows %+v, not the new rollout", name, a.Status().Rollout)
			}
			if _, err := a.SetRollout(t.Context(), record.RolloutAborted, "root"); err != nil {
				t.Fatal(err)
			}
			if soon(); a.Status().Rollout == nil || a.Status().Rollout.State != record.RolloutAborted {
				t.Errorf("%s shows a rollout that is not aborted: %+v", name, a.Status().Rollout)
			}
		}
	})
}

func TestProbeNowShowsARemovedMember(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		a := f.hosts["v1"].agent
		f.etcd.remove("v3")
		if err := a.ProbeNow(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := a.Status().Cluster.Voters; got != 2 {
			t.Errorf("%d voters are counted after the third was removed", got)
		}
	})
}

func TestProbeNowEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		keys := record.KeysFor("test")
		a := &Agent{publisher: publish.New(publish.Options{}, keys, nil), keys: keys, wake: make(chan struct{}, 1)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := a.ProbeNow(ctx); err == nil {
			t.Error("ProbeNow succeeds without a running loop")
		}
	})
}
