// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/agent/round"
)

// recovery builds the view of the recovery plan in force on this host. Without a plan, it builds the view of a recovery
// that was carried out without this host, if the cluster that answers has a record of replacing the cluster recorded on
// this host.
func (b *Builder) recovery(r *round.Round) *policy.Recovery {
	if k := r.Recovery; k != nil {
		return &policy.Recovery{
			Plan: k.Plan, By: k.By, Old: uint64(k.Old), New: uint64(k.New), Survivor: k.Alone, Member: uint64(k.Member),
			Noted: r.Noted.Cluster == uint64(k.New), Copy: copyOf(r.Copy, k.Plan),
			Snapshot: k.Source != nil, GivenUp: k.GivenUp != "",
		}
	}
	k := r.Recovered
	if !recoveredElsewhere(b.config, r) {
		return nil
	}
	return &policy.Recovery{
		Plan: k.Plan, By: k.By, Old: uint64(k.Old), New: uint64(k.New), Late: true, OldServes: r.OldServes,
	}
}

// recoveredElsewhere reports whether the cluster that answers was recovered without this host.
func recoveredElsewhere(c config.Config, r *round.Round) bool {
	if !r.Reachable || r.Recovered == nil {
		return false
	}
	return policy.Successor{
		Old: uint64(r.Recovered.Old), New: uint64(r.Recovered.New), Answers: r.Membership.ClusterID,
		Noted: r.Noted.Cluster, Pinned: c.Cluster.ID != "", Planned: r.Recovery != nil,
	}.Late()
}

// oldServes reports whether this host's own member still has a quorum of the old cluster. If so, two clusters serve,
// and stopping the member might cost the old cluster its quorum.
func (o *Observer) oldServes(ctx context.Context, r *round.Round) bool {
	own := cluster.Member{ID: uint64(r.Recovered.Old), ClientURLs: []string{o.opt.Config.Etcd.ClientURL}}
	s := o.opt.Etcd.Statuses(ctx, []cluster.Member{own})[own.ID]
	return s.Linearizable && s.ClusterID == uint64(r.Recovered.Old)
}

func copyOf(c recovery.Copy, plan string) policy.Copy {
	switch {
	case c.Plan != plan:
		return policy.Copy{}
	case c.Running:
		return policy.Copy{State: policy.CopyRuns}
	case c.Complete:
		return policy.Copy{State: policy.CopyComplete}
	}
	return policy.Copy{State: policy.CopyFailed, Text: c.Error}
}
