// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
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
func (a *Agent) RemoveMember(ctx context.Context, req control.RemovalRequest, by string) (control.Removal, error) {
	cannot := "cannot remove " + req.Member + ": "
	r := a.told.Current()
	switch {
	case r == nil:
		return control.Removal{}, refuse(http.StatusServiceUnavailable, codeNotYet, cannot+"quorumd has just started",
			"try again in a few seconds")
	case r.View.Self.Mode != policy.Manage:
		return control.Removal{}, refuse(http.StatusConflict, codeObserve, cannot+"quorumd only observes on this host",
			"ask on a host whose mode is manage, or set it here and restart quorumd")
	case !r.View.Cluster.Reachable || r.View.Cluster.Foreign():
		return control.Removal{}, refuse(http.StatusServiceUnavailable, codeUnreachable,
			cannot+"the cluster cannot be reached from here", "quorumctl explain; without a quorum etcd removes nobody")
	case r.View.Pause != nil:
		return control.Removal{}, refuse(http.StatusConflict, string(policy.Paused),
			cannot+"the cluster is paused by "+r.View.Pause.By+": "+r.View.Pause.Reason,
			"quorumctl resume, and ask again")
	}
	m, err := a.removable(r, req, cannot)
	if err != nil {
		return control.Removal{}, err
	}
	if m.ID == 0 { // it is gone already
		_, last := a.files.Removals()
		return control.Removal{
			MemberID: last.MemberID.String(), Name: last.Name, Reason: last.Reason, By: last.By,
			Since: last.Since, Until: last.Until, State: control.RemovalDone,
		}, nil
	}
	return a.askRemoval(ctx, r, m, req, by)
}

// removable finds the member that a person names, and refuses what no waiting would change. It gives none for one that
// this host has removed already.
func (a *Agent) removable(r *round.Round, req control.RemovalRequest, cannot string) (policy.Member, error) {
	var found []policy.Member
	var names []string
	for _, m := range r.View.Cluster.Members {
		id := record.MemberID(m.ID).String()
		names = append(names, fmt.Sprintf("%s (%s)", cmp.Or(m.Name, "one that has never started"), id))
		if id == req.Member || m.Name != "" && m.Name == req.Member {
			found = append(found, m)
		}
	}
	_, last := a.files.Removals()
	gone := len(found) == 0 && last != nil && last.Code == policy.Removed &&
		(last.Name == req.Member || last.MemberID.String() == req.Member)
	switch {
	case gone:
		return policy.Member{}, nil
	case len(found) == 0:
		return policy.Member{}, refuse(http.StatusBadRequest, control.CodeBadRequest,
			cannot+"no member is called that, or has that ID", "the members are "+strings.Join(names, ", "))
	case len(found) > 1:
		return policy.Member{}, refuse(http.StatusBadRequest, control.CodeBadRequest,
			cannot+"several members are called that", "name one by its ID: the members are "+strings.Join(names, ", "))
	case found[0].PeerURL == a.opt.Config.Etcd.PeerURL:
		return policy.Member{}, refuse(http.StatusConflict, control.CodeConflict, cannot+"it is this host's own member",
			"ask on another host")
	}
	asked := policy.Removal{MemberID: found[0].ID, Live: req.Live}
	if reason, holds := policy.AgainstRemoval(r.View, asked); holds {
		return policy.Member{}, refuse(http.StatusConflict, string(reason.Code), cannot+reason.Text,
			strings.ReplaceAll(reason.Code.Info().Remedy, "remove NAME", "remove "+req.Member))
	}
	return found[0], nil
}

func (a *Agent) askRemoval(ctx context.Context, r *round.Round, m policy.Member, req control.RemovalRequest,
	by string,
) (control.Removal, error) {
	cannot := "cannot remove " + req.Member + ": "
	now := a.opt.Wall().UTC()
	next := local.Removal{
		MemberID: record.MemberID(m.ID), Name: m.Name, Reason: req.Reason, By: by, Live: req.Live,
		Since: now, Until: now.Add(req.For),
	}
	var other *local.Removal
	err := local.Within(ctx, func() error {
		return a.files.ChangeRemoval(func(f *local.Removals) {
			switch k := f.Removal; {
			case k != nil && k.MemberID != next.MemberID && (now.Before(k.Until) || a.removes(r)):
				other = k
				return
			case k != nil && k.MemberID == next.MemberID:
				next.Since, next.Begun = k.Since, k.Begun
			}
			f.Removal = &next
		})
	})
	switch {
	case err != nil:
		return control.Removal{}, refuse(http.StatusServiceUnavailable, codeNotYet, cannot+err.Error(),
			"see whether paths.state can be written")
	case other != nil:
		return control.Removal{}, refuse(http.StatusConflict, control.CodeConflict,
			cannot+"the removal of "+other.Name+" ("+other.MemberID.String()+") is asked for here already, by "+
				other.By,
			"wait for it, or ask on another host")
	}
	a.note(ctx, "REMOVAL_ASKED", "the removal of member "+next.Name+" ("+next.MemberID.String()+") is asked for by "+by+
		": "+req.Reason)
	a.Wake()
	return publish.RemovalOf(&next, control.RemovalWaiting), nil
}

// removes tells whether the operation in flight is a removal of this host's.
func (a *Agent) removes(r *round.Round) bool {
	return r.Removes(a.opt.Config.Host.ID)
}

// noteRemoval ends what this host was asked to remove when the member is gone, or the time is over, beside the loop:
// the disk may hang. While it is not seen whether its operation is in flight it stands.
func (a *Agent) noteRemoval(ctx context.Context, r *round.Round) {
	k, _ := a.files.Removals()
	// its operation may be in flight, and etcd told
	unseen := !r.View.Cluster.Reachable || r.EtcdAt != r.At || r.Op == nil && r.OpAt != 0
	if k == nil || unseen || a.removes(r) {
		return
	}
	_, listed := r.Membership.ByID(uint64(k.MemberID))
	code, text := policy.Removed, "it is in the member list no more"
	switch {
	case !r.View.Cluster.Foreign() && !listed:
	case k.Begun && (r.Removal == nil || !r.Removal.Begun): // it has only just begun: this round saw what was before
		return
	case k.Begun:
		code, text = policy.Withdrawn,
			"its operation was released, or deleted, or ended by another host, or etcd did not say whether it had begun"
	case !r.Wall.Before(k.Until):
		code, text = policy.Withdrawn, "its time was over before its turn came"
		if first := firstReason(a.last); first.Code != "" {
			text += "; " + string(first.Code) + ": " + first.Text
		}
	default:
		return
	}
	a.ending.Refresh(ctx, a.opt.Now, noteEvery, noteTimeout, func(context.Context) (struct{}, error) {
		a.opt.noting("removal")
		err := a.files.EndRemoval(k, code, text, r.Wall)
		if err != nil {
			a.log.Error("end of the removal not noted", "error", err)
		}
		return struct{}{}, err
	})
}
