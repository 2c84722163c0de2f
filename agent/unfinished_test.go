// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// rollout returns the recorded rollout.
func (f *fleet) rollout() record.Rollout {
	f.t.Helper()
	r, err := record.Decode[record.Rollout]([]byte(f.etcd.get(record.KeysFor("test").Rollout())))
	must(f.t, err)
	return r
}

// asked reports whether a host has a request recorded on disk.
func (f *fleet) asked(host string) bool {
	k, _ := f.hosts[host].agent.files.Asked()
	return k != nil
}

func TestAHostDoneInARolloutIsNotTakenDownAgainForAnOldRecord(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		key := record.KeysFor("test").Rollout()
		req := control.RolloutRequest{Work: policy.WorkRestart, Reason: "a test", Hosts: []string{"s0000"}}
		if _, err := f.hosts["v1"].agent.StartRollout(t.Context(), req, "root"); err != nil {
			t.Fatal(err)
		}
		began := f.etcd.get(key)
		f.until(10*time.Minute, "it is done", func() bool { return f.rollout().State == record.RolloutDone })
		f.until(time.Minute, "it is recorded", func() bool { return !f.asked("s0000") })
		f.put(key, began) // the old record
		f.until(time.Minute, "it is stopped", func() bool { return f.rollout().State == record.RolloutStopped })
		if r := f.rollout(); !strings.Contains(r.Text, "s0000 is back from its operation") {
			t.Errorf("the text is %q", r.Text)
		}
		f.pass(5 * time.Minute)
		if k, _ := f.hosts["s0000"].agent.files.Asked(); k != nil {
			t.Errorf("it is requested once more: %+v", k)
		}
		if _, err := f.hosts["v1"].agent.SetRollout(t.Context(), record.RolloutRunning, "root"); err != nil {
			t.Fatal(err)
		}
		f.until(10*time.Minute, "after an operator has resumed it, it is taken down once more", func() bool {
			return f.rollout().State == record.RolloutDone
		})
	})
}

func TestAnOldRolloutRecordTakesALaterHostDownOnlyOnce(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		key := record.KeysFor("test").Rollout()
		req := control.RolloutRequest{Work: policy.WorkRestart, Reason: "a test", Hosts: []string{"s0000", "v2"}}
		_, err := f.hosts["v1"].agent.StartRollout(t.Context(), req, "root")
		must(t, err)
		old := f.rollout()
		f.until(20*time.Minute, "it is done", func() bool { return f.rollout().State == record.RolloutDone })
		f.until(time.Minute, "it is recorded", func() bool { return !f.asked("v2") })
		for i := range old.Hosts { // s0000 is recorded as done, and v2 waits again
			if old.Hosts[i].Name == "s0000" {
				old.Hosts[i].State = record.HostDone
			}
		}
		value, err := record.Encode(old)
		must(t, err)
		f.put(key, string(value))
		f.until(time.Minute, "it is stopped", func() bool { return f.rollout().State == record.RolloutStopped })
		if r := f.rollout(); !strings.Contains(r.Text, "v2 is back from its operation") {
			t.Errorf("the text is %q", r.Text)
		}
	})
}

// released returns a fleet in which the operation of v2 in a rollout was released, and the rollout's first record. A
// release in the very last step comes too late to stop the rollout. In that case, released tries again with a new
// fleet.
func released(t *testing.T) (f *fleet, began string) {
	t.Helper()
	for {
		f = newFleet(t, 0, usualPace())
		f.pass(time.Minute)
		req := control.RolloutRequest{Work: policy.WorkRestart, Reason: "a test", Hosts: []string{"v2"}}
		_, err := f.hosts["v1"].agent.StartRollout(t.Context(), req, "root")
		must(t, err)
		began = f.etcd.get(record.KeysFor("test").Rollout())
		// ReleaseOp fails until the operation has begun and v1 has observed its progress
		f.untilEvery(100*time.Millisecond, 10*time.Minute, "the operation of v2 is released", func() bool {
			return f.hosts["v1"].agent.ReleaseOp(t.Context(), control.ReleaseRequest{Reason: "a test"}, "root") == nil
		})
		if f.rollout().State != record.RolloutDone {
			return f, began
		}
		f.close()
	}
}

func TestAReleasedOperationCountsAsDoneUntilTheRolloutIsResumed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, began := released(t)
		defer f.close()
		if r := f.rollout(); r.State != record.RolloutStopped {
			t.Errorf("it is %s: %s", r.State, r.Text)
		}
		f.until(time.Minute, "v2 has no request", func() bool { return !f.asked("v2") })
		f.put(record.KeysFor("test").Rollout(), began) // the old record
		f.until(time.Minute, "it is stopped", func() bool { return f.rollout().State == record.RolloutStopped })
		const want = "the operation of v2 for this rollout has already ended (CANCELLED: its operation was released)"
		if r := f.rollout(); !strings.Contains(r.Text, want) {
			t.Errorf("the text is %q", r.Text)
		}
		_, err := f.hosts["v1"].agent.SetRollout(t.Context(), record.RolloutRunning, "root")
		must(t, err)
		f.until(10*time.Minute, "after an operator has resumed it, it is done", func() bool {
			return f.rollout().State == record.RolloutDone
		})
	})
}

func TestAnOperationDuringWhichARolloutIsResumedCountsAsDone(t *testing.T) {
	t.Parallel()
	inFleet(t, 0, func(t *testing.T, f *fleet) {
		keys := record.KeysFor("test")
		v1, v2 := f.hosts["v1"].agent, f.hosts["v2"].agent
		req := control.RolloutRequest{Work: policy.WorkRestart, Reason: "a test", Hosts: []string{"v2"}}
		_, err := v1.StartRollout(t.Context(), req, "root")
		must(t, err)
		f.until(10*time.Minute, "the operation of v2 begins", func() bool { return f.etcd.get(keys.Op()) != "" })
		for _, state := range []string{record.RolloutPaused, record.RolloutRunning} {
			_, err = v1.SetRollout(t.Context(), state, "root")
			must(t, err)
		}
		if r := f.rollout(); time.Since(r.Began()) != 0 || !r.Started.Before(r.Began()) {
			t.Errorf("it was resumed now, and its record says %s", r.Began())
		}
		f.until(10*time.Minute, "the operation is over", func() bool {
			k, end := v2.files.Asked()
			return k == nil && end != nil
		})
		if _, end := v2.files.Asked(); end.Code != policy.Cycled || end.RolloutResumed != 1 {
			t.Errorf("it ended as %+v", end)
		}
	})
}

func TestAnEtcdWithoutAVisibleRestartIsRestartedAtTheLoopsPace(t *testing.T) {
	t.Parallel()
	inFleet(t, 0, func(t *testing.T, f *fleet) {
		v2 := f.hosts["v2"]
		v2.mu.Lock()
		v2.mute = true
		v2.mu.Unlock()
		starts := func() int {
			v2.mu.Lock()
			defer v2.mu.Unlock()
			return v2.starts
		}
		req := control.RolloutRequest{Work: policy.WorkRestart, Reason: "a test", Hosts: []string{"v2"}}
		_, err := f.hosts["v1"].agent.StartRollout(t.Context(), req, "root")
		must(t, err)
		f.until(10*time.Minute, "it is restarted", func() bool { return starts() > 0 })
		before := starts()
		f.pass(time.Minute)
		if most := int(time.Minute/v2.agent.opt.Config.Timing.Interval) + 1; starts()-before > most {
			t.Errorf("etcd was started %d times in a minute, want at most %d", starts()-before, most)
		}
	})
}

func TestARolloutTooLargeForItsRecordIsRefused(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		keys := record.KeysFor("test")
		for i := range 700 {
			h := record.Host{
				ID: fmt.Sprintf("h%04d", i), Name: fmt.Sprintf("%s-%04d", strings.Repeat("n", 150), i),
				Mode: "manage",
			}
			value, err := record.Encode(h)
			must(t, err)
			f.put(keys.Host(h.ID), string(value))
		}
		_, err := f.hosts["v1"].agent.StartRollout(t.Context(),
			control.RolloutRequest{Work: policy.WorkReboot, Reason: "a test"}, "root")
		refused, is := err.(*control.Error)
		if !is || refused.Kind != control.Wrong ||
			!strings.Contains(refused.Message, "704 hosts would exceed 131072 bytes") {
			t.Errorf("got %v", err)
		}
		if found, err := f.etcd.of("v1").Read(t.Context(), cluster.Span{Start: keys.Rollout()}); err != nil ||
			len(found.Pairs) > 0 {
			t.Errorf("it has begun: %v, %v", found.Pairs, err)
		}
	})
}
