// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"

	"github.com/quorumd/quorumd/agent/policy"
)

// moveLeader asks the leader to transfer leadership. In an operation, the leader is this host's own member, or the
// member to be removed or replaced. For a request without an operation, it can be any member.
func (a *Actor) moveLeader(ctx context.Context, t *task) error {
	r := t.on
	m, ok := r.OwnMember(r.Membership, a.opt.Config.Etcd.PeerURL)
	if out := r.View.Op.RemovedMember(); out != 0 {
		m, ok = r.Membership.ByID(out)
	} else if r.View.Op == nil {
		m, ok = r.Membership.ByID(leaderOf(r.View))
	}
	if !ok || len(m.ClientURLs) == 0 {
		return errors.New("cannot transfer leadership: the leader is unknown, or has no client URL")
	}
	return a.opt.Etcd.MoveLeader(ctx, m.ClientURLs[0], t.step.MemberID)
}

// leaderOf returns the ID of the member that leads; 0 if none does.
func leaderOf(v policy.View) uint64 {
	for _, m := range v.Cluster.Members {
		if m.Leader {
			return m.ID
		}
	}
	return 0
}

// stepDown asks this host's own member to transfer leadership, because that member leads but should not. If another
// member leads by now, the request fails.
func (a *Actor) stepDown(ctx context.Context, t *task) error {
	list := t.on.Membership
	if t.on.Led != nil { // the decision was based on this list
		list = t.on.Led.Membership
	}
	m, ok := t.on.OwnMember(list, a.opt.Config.Etcd.PeerURL)
	if !ok || len(m.ClientURLs) == 0 {
		return errors.New("cannot transfer leadership: this host's member is not in the member list, or has no " +
			"client URL")
	}
	return a.opt.Etcd.MoveLeader(ctx, m.ClientURLs[0], t.step.MemberID)
}

func (a *Actor) steppedDown(t *task) {
	a.did.SteppedDown, a.did.SteppedDownInRow = a.now(), t.on.View.LeadershipTransfers.NextInRow(t.on.View.Limits)
}
