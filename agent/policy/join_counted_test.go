// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"
)

func TestOnlyAJoinAttemptCounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, kind, host string
		phase            OpPhase
		outcome          ReasonCode
		want             JoinNote
	}{
		{"a join", KindJoin, "n3", PhaseAdded, LearnerStalled, JoinFailed},
		{"a successful join", KindJoin, "n3", PhasePromoted, Joined, JoinSucceeded},
		{"a join that etcd was never asked for", KindJoin, "n3", PhaseBegun, HealthLost, JoinFailed},
		{"another host's join", KindJoin, "n1", PhaseAdded, LearnerStalled, JoinUncounted},
		{"a join that this host has not begun", KindJoin, "n3", PhaseAdded, OperationRejected, JoinUncounted},
		{"a replacement of a voter that came back", KindReplace, "n3", PhaseBegun, MemberLive, JoinUncounted},
		{"a replacement that took too long", KindReplace, "n3", PhaseBegun, JoinTimedOut, JoinFailed},
		{"another host's", KindReplace, "n1", PhaseBegun, JoinTimedOut, JoinUncounted},
		{"a replacement that may have reached etcd", KindReplace, "n3", PhaseRollback, MemberLive, JoinFailed},
		{"a host operation", KindCycle, "n3", PhaseBack, Cycled, JoinUncounted},
		{"a removal", KindRemove, "n3", PhaseRemoving, Removed, JoinUncounted},
	} {
		v := spareView()
		v.Op = &Op{Kind: c.kind, Host: c.host, Phase: c.phase}
		if c.kind == KindReplace {
			v.Op.Replaces, v.Op.Target = 9, RoleVoter
		}
		if got := noteJoin(v, Step{Kind: StepEndOp, Outcome: c.outcome}); got != c.want {
			t.Errorf("%s counts as %d, want %d", c.name, got, c.want)
		}
		if got := noteJoin(v, Step{Kind: StepSetPhase, Outcome: c.outcome}); got != JoinUncounted {
			t.Errorf("%s counts as %d although it does not end", c.name, got)
		}
	}
}

func TestJoinsBackOffUpToAnHour(t *testing.T) {
	t.Parallel()
	for failed, want := range map[int]time.Duration{
		0: 0, 1: 7 * time.Minute, 2: 14 * time.Minute, 4: 56 * time.Minute, 5: time.Hour, 90: time.Hour,
	} {
		if got := JoinBackoff(failed, 7*time.Minute); got != want {
			t.Errorf("after %d failures it waits for %s, want %s", failed, got, want)
		}
	}
}

func TestAReplacementIsCountedOnceWithThePhaseThatAsksEtcd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		step     Step
		seen     OpPhase
		replaces uint64
		want     bool
	}{
		{"a member is about to be removed", Step{Kind: StepSetPhase, Phase: PhaseRemoving}, PhaseBegun, 7, true},
		{"after the join", Step{Kind: StepSetPhase, Phase: PhaseRemoving}, PhasePromoted, 7, true},
		{"under a new lock", Step{Kind: StepSetPhase, Phase: PhaseRemoving}, PhaseRemoving, 7, false},
		{"on an operator's request", Step{Kind: StepSetPhase, Phase: PhaseRemoving}, PhaseBegun, 0, false},
		{"no member is removed yet", Step{Kind: StepSetPhase, Phase: PhaseAdded}, PhaseBegun, 7, false},
		{"the member is removed", Step{Kind: StepRemoveMember}, PhaseRemoving, 7, false},
	} {
		v := spareView()
		v.Op = &Op{Kind: KindReplace, Host: "n3", Phase: c.seen, Replaces: c.replaces}
		if got := countsRepair(v, c.step); got != c.want {
			t.Errorf("%s: it is counted: %t", c.name, got)
		}
	}
	if v := spareView(); countsRepair(v, Step{Kind: StepTakeLock}) {
		t.Error("a replacement is counted without an operation in flight")
	}
}
