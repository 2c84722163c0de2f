// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"
)

func TestASurvivorCopiesItsDataOnceItsUnitIsUsable(t *testing.T) {
	t.Parallel()
	failedCopy := func(ago time.Duration) func(*View) {
		return func(v *View) { v.Recovery.Copy, v.CopiedFor = Copy{State: CopyFailed, Text: "no free space"}, ago }
	}
	play(t, func() View {
		v := site{survivor: true, data: oldCluster, unit: UnitInactive, planned: true, env: true}.view()
		v.Limits.StartRetry = time.Minute
		return v
	}, []scene{
		{"its etcd is stopped", nil, StepCopyData, ""},
		{"the unit is missing", func(v *View) { v.Unit.State = UnitMissing }, StepNone, UnitUnusable},
		{"the unit is unknown", func(v *View) { v.Unit.State = UnitUnknown }, StepNone, UnitNotKnown},
		{"the copy has just failed", failedCopy(time.Second), StepNone, Recovering},
		{"the copy failed a while ago", failedCopy(time.Hour), StepCopyData, ""},
	})
}
