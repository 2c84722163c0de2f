// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

func TestTheOutcomeOfARollBackIsThatOfItsRecordOrOfAnOlderAgentsReason(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		op   record.Op
		want policy.ReasonCode
	}{
		"the record names it": {
			record.Op{Phase: "rollback", Outcome: "HEALTH_LOST", Reason: "LEARNER_STALLED: no progress"},
			policy.HealthLost,
		},
		"an older agent's reason begins with it": {
			record.Op{Phase: "rollback", Reason: "LEARNER_STALLED: no progress"}, policy.LearnerStalled,
		},
		"a reason that only begins like a code": {
			record.Op{Phase: "rollback", Reason: "ORPHANED by nobody"}, "ORPHANED by nobody",
		},
		"an operation that goes on has none": {record.Op{Phase: "added", Reason: "ORPHANED: no"}, ""},
	} {
		if got := outcomeOf(&c.op); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestTheHistoryTellsProgramsHowItWent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 0, usualPace())
		defer f.close()
		f.pass(time.Minute)
		f.takeDown("v2")
		f.over("v2")
		f.until(10*time.Minute, "v2 is back", func() bool {
			op, _ := f.op()
			return op.HostName == ""
		})
		f.pass(time.Minute)
		ended := 0
		for _, l := range storedLines(t, f.etcd) {
			switch {
			case l.Kind == "op":
				ended++
				if l.Operation != policy.KindCycle || l.Outcome != string(policy.Cycled) {
					t.Errorf("the end of a %q operation with outcome %q: %s", l.Operation, l.Outcome, l.Text)
				}
			case l.Kind == "step" && l.Outcome != record.StepOK:
				t.Errorf("a step with outcome %q: %s", l.Outcome, l.Text)
			}
		}
		if ended != 1 {
			t.Errorf("%d operations have ended, want 1", ended)
		}
	})
}
