// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"

	"github.com/quorumd/quorumd/agent/lock"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// beginReplace records the operation.
func (a *Actor) beginReplace(ctx context.Context, t *task) error {
	a.opt.ForgetBinary() // a replaced binary must not start before its version is known
	c := a.opt.Config
	return a.lock.Begin(ctx, record.Op{
		Kind: policy.KindReplace, Host: c.Host.ID, HostName: c.Host.Name, Target: string(t.step.Target),
		Phase: string(policy.PhaseBegun), BootID: a.opt.BootID, Replaces: record.MemberID(t.step.MemberID),
		PeerURL: t.on.Decision.Role.RecordedURL(t.on.View.Self.PeerURL),
		Started: t.on.Wall, Clock: t.on.At, Reason: t.step.Why, By: "policy",
	})
}

// repairWrites returns the write that records a replacement and the ejected host, for the transaction that updates the
// operation record. It returns nothing if the policy does not count the replacement in this step. The policy counts it
// before the replaced member is removed. The record contains each replaced member once, even after several attempts.
func (a *Actor) repairWrites(r *round.Round, op record.Op) ([]lock.Extra, error) {
	if !r.Decision.Notes.Repair {
		return nil, nil
	}
	var all record.Repairs
	if r.Repairs != nil {
		all = *r.Repairs
	}
	dead, _ := r.Membership.ByID(uint64(op.Replaces))
	one := record.Repair{Time: r.Wall, Host: op.Host, Name: op.HostName, Member: op.Replaces, Dead: dead.Name}
	if len(dead.PeerURLs) > 0 {
		one.PeerURL = dead.PeerURLs[0]
	}
	value, err := record.Encode(all.And(one))
	return []lock.Extra{{Key: a.keys.Repairs(), At: r.RepairsAt, Value: value}}, err
}
