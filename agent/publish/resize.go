// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// SizeOf returns the recorded size of the cluster, or nil.
func SizeOf(s *record.Size) *control.Size {
	if s == nil {
		return nil
	}
	return &control.Size{
		Voters: s.Voters, WithoutSnapshot: s.WithoutSnapshot, By: s.By, Reason: s.Reason, Since: s.Since,
	}
}

// ResizeOf returns the size of the cluster in a round, with the steps that lead to the given number of voters.
func ResizeOf(r *round.Round, voters int) control.Resize {
	now, live := r.View.Cluster.Counts()
	out := control.Resize{
		Voters: now, Target: voters, Configured: r.View.Target.Configured, Size: SizeOf(r.Size), Revision: r.SizeAt,
		FaultTolerance: policy.Tolerance(now, live),
	}
	out.Steps, out.Warnings = policy.ResizePlan(r.View, voters)
	return out
}
