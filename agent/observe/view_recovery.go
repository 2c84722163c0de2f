// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/agent/round"
)

// recovery makes the view of the plan that is in force here; without one, of a recovery that was carried out without
// this host: the cluster that answers says that it goes on in the place of the one that this host knows.
func (b *Builder) recovery(v *policy.View, r *round.Round) *policy.Recovery {
	if k := r.Recovery; k != nil {
		return &policy.Recovery{
			Plan: k.Plan, By: k.By, Old: uint64(k.Old), New: uint64(k.New), Survivor: k.Alone, Member: uint64(k.Member),
			Noted: r.Noted.Cluster == uint64(k.New), Copy: copyOf(r.Copy, k.Plan),
		}
	}
	k := r.Recovered
	if !r.Reachable || k == nil || b.config.Cluster.ID != "" || r.Noted.Cluster == 0 ||
		r.Noted.Cluster != uint64(k.Old) || v.Cluster.ID != uint64(k.New) {
		return nil
	}
	return &policy.Recovery{Plan: k.Plan, By: k.By, Old: uint64(k.Old), New: uint64(k.New), Late: true}
}

func copyOf(c recovery.Copy, plan string) policy.Copy {
	switch {
	case c.Plan != plan:
		return policy.Copy{}
	case c.Runs:
		return policy.Copy{State: policy.CopyRuns}
	case c.Whole:
		return policy.Copy{State: policy.CopyWhole}
	}
	return policy.Copy{State: policy.CopyFailed, Text: c.Error}
}
