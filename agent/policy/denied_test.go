// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

func TestDeniedAccessIsDistinctFromAnUnansweringCluster(t *testing.T) {
	t.Parallel()
	play(t, spareView, []scene{
		{"it answers no client", func(v *View) { v.Cluster = Cluster{Error: "refused"} }, StepNone, ClusterUnreachable},
		{"it denies this host access", func(v *View) {
			v.Cluster = Cluster{Error: "permission denied", Denied: true}
		}, StepNone, PermissionDenied},
	})
	for denied, want := range map[bool]ReasonCode{true: PermissionDenied, false: StepFailed} {
		v := spareView()
		v.Failed = FailedStep{Kind: StepTakeLock, Text: "permission denied for this key", Denied: denied}
		if d := Decide(v); d.Step.Kind != StepTakeLock || len(d.Reasons) == 0 || d.Reasons[0].Code != want {
			t.Errorf("denied: %t: the step is %s, for %v; want %s", denied, d.Step.Kind, d.Reasons, want)
		}
	}
}
