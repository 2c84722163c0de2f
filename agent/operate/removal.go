// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// RemoveMember records a removal request on this host's disk. The agent removes the member under the lock as soon as no
// reason prevents it. RemoveMember immediately refuses a request that can never be carried out. A repeated request
// replaces the earlier one, but keeps its time. With DryRun it records nothing.
func (o *Operator) RemoveMember(ctx context.Context, req control.RemovalRequest, by string) (control.Removal, error) {
	cannot := "cannot remove " + req.Member + ": "
	r, err := o.current(cannot)
	if err != nil {
		return control.Removal{}, err
	}
	if err := refused(cannot, policy.AgainstRemovals(r.View)); err != nil {
		return control.Removal{}, err
	}
	m, err := o.removable(r, req, cannot)
	if err != nil {
		return control.Removal{}, err
	}
	if m.ID == 0 { // already removed
		_, last := o.opt.Files.Removals()
		return control.Removal{RequestedRemoval: last.RequestedRemoval, State: control.RemovalDone}, nil
	}
	return o.askRemoval(ctx, r, m, req, by, "", cannot)
}

// removable returns the member that the operator named. It refuses a removal that can never be carried out. For a
// member that this host has already removed, it returns the zero Member.
func (o *Operator) removable(r *round.Round, req control.RemovalRequest, cannot string) (policy.Member, error) {
	_, last := o.opt.Files.Removals()
	removed := last != nil && last.Code == policy.Removed &&
		(last.Name == req.Member || last.MemberID.String() == req.Member)
	m, against := policy.MemberNamed(r.View, req.Member, removed)
	if against != nil || m.ID == 0 {
		return m, refused(cannot, against)
	}
	against = policy.AgainstRemoval(r.View, policy.Removal{MemberID: m.ID, Live: req.Live}, req.WithoutSnapshot)
	if against != nil {
		against.Hint = strings.ReplaceAll(against.Hint, "remove NAME", "remove "+req.Member)
		if against.Code == policy.MemberLive { // for a live voter, suggest retire, which lets another host join first
			against.Hint += "; to keep its host out for good: quorumctl retire " + m.Name + " --reason '<why>'"
		}
	}
	return m, refused(cannot, against)
}

// askRemoval records the removal request on this host's disk. retires is the ID of the host whose retirement the
// removal belongs to, or empty. cannot is the beginning of the error messages.
func (o *Operator) askRemoval(ctx context.Context, r *round.Round, m policy.Member, req control.RemovalRequest,
	by, retires, cannot string,
) (control.Removal, error) {
	now := o.opt.Wall().UTC()
	next := control.RequestedRemoval{
		MemberID: record.MemberID(m.ID), Name: m.Name, Reason: req.Reason, By: by, Live: req.Live,
		Since: now, Until: now.Add(time.Duration(req.For)),
	}
	if req.DryRun {
		return control.Removal{RequestedRemoval: next, State: control.RemovalWaiting, DryRun: true}, nil
	}
	var recorded hoststate.Removal
	err := onDisk(ctx, cannot, func() (against *policy.Refusal, err error) {
		recorded, against, err = o.opt.Files.AskRemoval(next, retires, r.Removes(o.opt.Config.Host.ID))
		return against, err
	})
	if err != nil {
		return control.Removal{}, err
	}
	o.note(ctx, "REMOVAL_ASKED", "removal of member "+next.Name+" ("+next.MemberID.String()+") requested by "+by+
		": "+req.Reason)
	o.opt.Wake()
	return control.Removal{RequestedRemoval: recorded.RequestedRemoval, State: control.RemovalWaiting}, nil
}
