// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

func TestHistoryLinesHaveOutcomesForPrograms(t *testing.T) {
	t.Parallel()
	inFleet(t, 0, func(t *testing.T, f *fleet) {
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
			case l.Kind == "operation":
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
