// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/local"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/publish"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// RemoveMember notes on this host's disk that a member is to be removed, which is then done under the lock when nothing
// is against it. What no waiting would change is refused at once. Asked again it is the same removal, with the new
// reason and time.
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
	if m.ID == 0 { // it is gone already
		_, last := o.opt.Files.Removals()
		return control.Removal{
			MemberID: last.MemberID.String(), Name: last.Name, Reason: last.Reason, By: last.By,
			Since: last.Since, Until: last.Until, State: control.RemovalDone,
		}, nil
	}
	return o.askRemoval(ctx, r, m, req, by)
}

// removable finds the member that a person names, and refuses what no waiting would change. It gives none for one that
// this host has removed already.
func (o *Operator) removable(r *round.Round, req control.RemovalRequest, cannot string) (policy.Member, error) {
	var found []policy.Member
	var names []string
	for _, m := range r.View.Cluster.Members {
		id := record.MemberID(m.ID).String()
		names = append(names, fmt.Sprintf("%s (%s)", cmp.Or(m.Name, "one that has never started"), id))
		if id == req.Member || m.Name != "" && m.Name == req.Member {
			found = append(found, m)
		}
	}
	_, last := o.opt.Files.Removals()
	gone := len(found) == 0 && last != nil && last.Code == policy.Removed &&
		(last.Name == req.Member || last.MemberID.String() == req.Member)
	switch {
	case gone:
		return policy.Member{}, nil
	case len(found) == 0:
		return policy.Member{}, refuse(control.Wrong, control.CodeBadRequest,
			cannot+"no member is called that, or has that ID", "the members are "+strings.Join(names, ", "))
	case len(found) > 1:
		return policy.Member{}, refuse(control.Wrong, control.CodeBadRequest,
			cannot+"several members are called that", "name one by its ID: the members are "+strings.Join(names, ", "))
	}
	against := policy.AgainstRemoval(r.View, policy.Removal{MemberID: found[0].ID, Live: req.Live}, req.WithoutSnapshot)
	if against != nil {
		against.Hint = strings.ReplaceAll(against.Hint, "remove NAME", "remove "+req.Member)
		return policy.Member{}, refused(cannot, against)
	}
	return found[0], nil
}

func (o *Operator) askRemoval(ctx context.Context, r *round.Round, m policy.Member, req control.RemovalRequest,
	by string,
) (control.Removal, error) {
	cannot := "cannot remove " + req.Member + ": "
	now := o.opt.Wall().UTC()
	next := local.Removal{
		MemberID: record.MemberID(m.ID), Name: m.Name, Reason: req.Reason, By: by, Live: req.Live,
		Since: now, Until: now.Add(req.For),
	}
	var stands local.Removal
	err := onDisk(ctx, cannot, func() (against *policy.Refusal, err error) {
		stands, against, err = o.opt.Files.AskRemoval(next, r.Removes(o.opt.Config.Host.ID))
		return against, err
	})
	if err != nil {
		return control.Removal{}, err
	}
	o.note(ctx, "REMOVAL_ASKED", "the removal of member "+next.Name+" ("+next.MemberID.String()+") is asked for by "+by+
		": "+req.Reason)
	o.opt.Wake()
	return publish.RemovalOf(&stands, control.RemovalWaiting), nil
}
