// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
)

// pauseUpgrade changes a view so that an upgrade to 3.7 is paused before the member with this ID.
func pauseUpgrade(v *View, last uint64) {
	for i := range v.Cluster.Members {
		m := &v.Cluster.Members[i]
		switch {
		case m.ID != last:
			m.Version = ParseVersion("3.7.3")
		case !m.Live:
			m.Version = Version{}
		}
	}
	v.Self.Etcd = ParseVersion("3.7.3")
	v.Rollout = &Rollout{ID: "r1", Work: WorkCommand, Upgrade: "3.7.3", WithoutSnapshot: true, Raises: true}
}

func TestTheLastMemberStaysUntilAnOperatorHasDecidedAboutTheUpgrade(t *testing.T) {
	t.Parallel()
	const until = "n1 stays until the upgrade is resumed or aborted: no other member is known to run etcd 3.6, and " +
		"without such a member none can be rolled back"
	const back = "n1 stays until the rollback is done or aborted: no other member is known to run etcd 3.6, and " +
		"without such a member none can be rolled back"
	version := func(i int, to string) func(*View) {
		return func(v *View) { v.Cluster.Members[i].Version = ParseVersion(to) }
	}
	rollout := func(change func(r *Rollout)) func(*View) { return func(v *View) { change(v.Rollout) } }
	for name, c := range map[string]struct {
		change func(*View)
		want   string // empty if n1 may be removed
	}{
		"the upgrade is paused before the member": {func(*View) {}, until},
		"the upgrade has stopped":                 {func(*View) {}, until},
		"the upgrade has yet to pause":            {rollout(func(r *Rollout) { r.Runs, r.Hold = true, true }), until},
		"it does not answer":                      {version(0, ""), until},
		"another member does not answer":          {version(2, ""), until},
		"another member is older as well":         {version(2, "3.6.16"), ""},
		"the member is upgraded":                  {version(0, "3.7.3"), ""},
		"the upgrade was resumed":                 {rollout(func(r *Rollout) { r.Runs = true }), ""},
		"the upgrade was aborted":                 {rollout(func(r *Rollout) { r.Over = true }), ""},
		"there is no rollout":                     {func(v *View) { v.Rollout = nil }, ""},
		"the rollout is no upgrade":               {rollout(func(r *Rollout) { r.Upgrade, r.Raises = "", false }), ""},
		"it is an upgrade to a patch, and its version is unknown": {func(v *View) {
			pauseUpgrade(v, 1)
			version(0, "")(v)
			v.Rollout.Raises = false
		}, ""},
		"a rollback to the old version runs": {rollout(func(r *Rollout) {
			r.Upgrade, r.Raises, r.Runs = "3.6.16", false, true
		}), back},
		"another member was rolled back": {func(v *View) {
			v.Rollout.Upgrade, v.Rollout.Raises, v.Rollout.Runs = "3.6.16", false, true
			version(2, "3.6.16")(v)
		}, ""},
		"an old learner is left": {oldLearner, ""},
	} {
		v := upgradeView("3.6.16")
		pauseUpgrade(&v, 1)
		c.change(&v)
		m, _ := v.memberByID(1)
		if why, _ := lastOfUpgrade(v, m, Version{}); why != c.want {
			t.Errorf("%s: %q, want %q", name, why, c.want)
		}
	}
	v := upgradeView("3.6.16")
	pauseUpgrade(&v, 1)
	if why, held := lastOfUpgrade(v, v.Cluster.Members[0], v36(16)); held {
		t.Errorf("a host with etcd 3.6 joins first: %s", why)
	}
	if _, held := lastOfUpgrade(v, v.Cluster.Members[0], ParseVersion("3.7.3")); !held {
		t.Error("a host with etcd 3.7 joins first, and the last older member may be removed")
	}
}

func TestTheLastMemberOfAPausedUpgradeDoesNotLeaveForAResize(t *testing.T) {
	t.Parallel()
	last := func(v *View) { pauseUpgrade(v, 5) }
	play(t, resized, []scene{
		{"it stays during the pause", last, StepNone, TooManyVoters},
		{"another voter may leave", func(v *View) { pauseUpgrade(v, 4) }, StepTakeLock, ""},
		{"it leaves once the upgrade was aborted", func(v *View) {
			last(v)
			v.Rollout.Over = true
		}, StepTakeLock, ""},
	})
	play(t, leavingNow(PhaseRemoving), []scene{
		{"a leave that has begun is rolled back", last, StepRollBack, UpgradeHeld},
	})
	v := resized()
	last(&v)
	if text, _ := surplus(v); !strings.Contains(text, "n5 stays until the upgrade is resumed or aborted") {
		t.Errorf("the reason is %q", text)
	}
}

func TestADeadLastMemberIsReplacedOnceAnOperatorHasDecidedAboutTheUpgrade(t *testing.T) {
	t.Parallel()
	play(t, deadView, []scene{
		{"it is not replaced during the pause", func(v *View) { pauseUpgrade(v, 3) }, StepNone, UpgradeHeld},
		{"it is replaced once the upgrade was resumed", func(v *View) {
			pauseUpgrade(v, 3)
			v.Rollout.Runs = true
		}, StepTakeLock, ""},
		{"it is replaced once the upgrade was aborted", func(v *View) {
			pauseUpgrade(v, 3)
			v.Rollout.Over = true
		}, StepTakeLock, ""},
	})
	v := deadView()
	pauseUpgrade(&v, 3)
	if dead := DeadVoters(v); len(dead) != 1 ||
		!strings.HasPrefix(dead[0].Held, "n3 stays until the upgrade is resumed or aborted") {
		t.Errorf("the dead voters are %+v", dead)
	}
}

func TestAnOperatorsRemovalOfTheLastMemberIsRefusedDuringAPausedUpgrade(t *testing.T) {
	t.Parallel()
	v := deadView()
	pauseUpgrade(&v, 3)
	refusal := AgainstRemoval(v, Removal{MemberID: 3}, false)
	if refusal == nil || refusal.Code != UpgradeHeld || !strings.Contains(refusal.Hint, "quorumctl upgrade abort") {
		t.Errorf("the refusal is %+v", refusal)
	}
	v.Rollout.Over = true
	if refusal := AgainstRemoval(v, Removal{MemberID: 3}, false); refusal != nil {
		t.Errorf("after the upgrade was aborted: %+v", refusal)
	}
}
