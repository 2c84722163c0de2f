// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// failedDiskView returns the view of a host whose maintenance is over and whose etcd was restarted, but whose disk
// stays FAILED.
func failedDiskView() View {
	v := downView()
	v.Asked.Over, v.Asked.Ended, v.Asked.OverFor, v.Asked.Stopped = true, true, 3*time.Hour, false
	v.Unit.State, v.Op.Phase, v.Op.WrittenFor = UnitActive, PhaseBack, 3*time.Hour
	v.Cluster.Members[2] = voter(3, "n3")
	v.Health = Health{State: health.Failed, For: 3 * time.Hour, Text: "wal write+sync: input/output error"}
	v.Limits.ReturnGiveUp = 2 * time.Hour
	return v
}

func TestAHostWithAFailedDiskEndsItsOperationAfterTheLimit(t *testing.T) {
	t.Parallel()
	play(t, failedDiskView, []scene{
		{"the limit is over", nil, StepEndOp, ""},
		{"its etcd does not stay up", func(v *View) {
			v.Unit.State, v.Op.Phase, v.Cluster.Members[2].Live = UnitFailed, PhaseDown, false
		}, StepEndOp, ""},
		{"the lock is free", func(v *View) { v.Lock = Lock{Known: true} }, StepTakeLock, ""},
		{"the disk has not been FAILED for long enough", func(v *View) { v.Health.For = time.Hour }, StepNone, NotBack},
		{"the work has only just ended", func(v *View) { v.Asked.OverFor = time.Hour }, StepNone, NotBack},
		{"its etcd has only just been started", func(v *View) { v.Op.WrittenFor = time.Minute }, StepNone, Returning},
		{"it is SLOW", func(v *View) { v.Health.State = health.Slow }, StepNone, NotBack},
		{"it has passed a qualifying run", func(v *View) { v.Health.State = health.OK }, StepEndOp, ""},
		{"the limit is disabled", func(v *View) { v.Limits.ReturnGiveUp = 0 }, StepNone, NotBack},
		{"an operator still works there", func(v *View) {
			v.Asked.Over, v.Asked.Ended, v.Asked.OverFor, v.Op.Phase = false, false, 0, PhaseDown
			v.Unit.State, v.Asked.Stopped = UnitInactive, true
		}, StepNone, InMaintenance},
	})
	d := Decide(failedDiskView())
	if d.Step.Outcome != HealthBad || d.Notes.Request.Change != RequestEnding ||
		!strings.Contains(d.Step.Why, "input/output error") {
		t.Errorf("it ends with %+v, and the request %d", d.Step, d.Notes.Request.Change)
	}
	if end := RolloutAfter(RolloutProgress{Host: "n3", Ongoing: true}, d.Step); end.HostDone || end.Stopped == "" {
		t.Errorf("the end of its rollout: %+v", end)
	}
}
