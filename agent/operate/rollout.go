// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/publish"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// StartRollout starts a rollout, which takes down one host after another for the same work. With DryRun it only returns
// the rollout.
func (o *Operator) StartRollout(ctx context.Context, req control.RolloutRequest, by string) (control.Rollout, error) {
	const cannot = "cannot start the rollout: "
	if req.Work == policy.WorkReboot {
		if err := refused(cannot, o.unfitToReboot(ctx, "on this host, ")); err != nil {
			return control.Rollout{}, err
		}
	}
	found, at, err := o.readRollout(ctx)
	if err != nil {
		return control.Rollout{}, o.refuseRead(cannot, err)
	}
	if found != nil && !req.AfterAbort {
		against := policy.AgainstRollout(policy.RolloutState(found.State), found.By, found.Reason)
		if err := refused(cannot, against); err != nil {
			return control.Rollout{}, err
		}
	}
	raises, err := o.raisesVersion(cannot, req)
	if err != nil {
		return control.Rollout{}, err
	}
	keeps, err := o.keepsJob(cannot, found, req)
	if err != nil {
		return control.Rollout{}, err
	}
	hosts, err := o.opt.Etcd.Read(ctx, cluster.Span{Start: o.keys.Hosts(), End: o.keys.Lock()})
	if err != nil {
		return control.Rollout{}, o.refuseCall(cannot, err, "try again when the cluster has a quorum")
	}
	if hosts.Rest != "" {
		against := policy.AgainstUnread(policy.Unreadable{
			Kind: policy.RecordHost, Key: hosts.Rest,
			Why: "not read, like all later records: the records before it exceed the limit of one read",
		}, len(req.Hosts) > 0)
		if err := refused(cannot, against); err != nil {
			return control.Rollout{}, err
		}
	}
	rollout := record.Rollout{
		ID: strings.ToLower(rand.Text()[:8]), Work: string(req.Work), Command: req.Command, Etcd: req.Version,
		Bare: req.WithoutSnapshot, Raises: raises, Hold: raises && !req.NoHold, Downgrade: req.Downgrade,
		DowngradeJob: keeps,
		Reason:       req.Reason, By: by, Started: o.opt.Wall().UTC(),
	}
	rollout.Since = rollout.Started
	chosen, err := rolloutHosts(hosts, o.keys.Hosts(), req, o.running())
	if err != nil {
		return control.Rollout{}, err
	}
	if req.Work.RunsProgram() {
		// a command that is missing on this host is most likely mistyped
		if err := refused(cannot, o.unfitFor(ctx, req.Command, "on this host, ")); err != nil {
			return control.Rollout{}, err
		}
	}
	rollout.Hosts = waitingHosts(chosen)
	state, text := policy.RolloutBegins(len(rollout.Waiting()))
	rollout.State, rollout.Text = string(state), text
	if most, err := rollout.Room(); err != nil {
		return control.Rollout{}, refuse(control.Wrong, control.CodeConflict,
			fmt.Sprintf("%sits record of %d hosts would exceed %d bytes before the last host is done: about %d "+
				"hosts fit", cannot, len(rollout.Hosts), record.MaxRolloutBytes, most),
			"name fewer hosts with --hosts, and start another rollout for the rest when this one is done")
	}
	if req.DryRun {
		return o.rolloutPreview(rollout, chosen, len(req.Hosts) > 0), nil
	}
	if err := o.writeRollout(ctx, rollout, at, cannot); err != nil {
		return control.Rollout{}, err
	}
	o.note(ctx, "ROLLOUT_STARTED", fmt.Sprintf("%s of %d hosts started by %s: %s", req.Work, len(rollout.Hosts), by,
		req.Reason))
	o.opt.Wake()
	return publish.RolloutOf(rollout, nil), nil
}

// raisesVersion reports whether a rollout ends by raising the cluster version, which is the point of no return. It
// returns an error if the version of the rollout cannot be reached now.
func (o *Operator) raisesVersion(cannot string, req control.RolloutRequest) (bool, error) {
	if req.Version == "" {
		return false, nil
	}
	r := o.opt.Rounds.Reached()
	if r == nil {
		return false, refuse(control.Conflicts, control.CodeConflict, cannot+"the members have not answered yet",
			"try again when the cluster has a quorum")
	}
	if req.Downgrade {
		return false, refused(cannot, policy.AgainstDowngrade(r.View, req.Version))
	}
	against := policy.AgainstUpgrade(r.View, req.Work, req.Version)
	return policy.RaisesVersion(r.View, req.Version), refused(cannot, against)
}

// keepsJob reports whether a new rollout continues with etcd's downgrade job that the last rollout has enabled. It
// returns an error if that job must be cancelled first, because only the last rollout's record shows that quorumd
// enabled the job.
func (o *Operator) keepsJob(cannot string, last *record.Rollout, req control.RolloutRequest) (bool, error) {
	if last == nil || !last.DowngradeJob || req.DryRun && req.AfterAbort {
		return false, nil
	}
	r := o.opt.Rounds.Reached()
	if r == nil {
		return false, refuse(control.Conflicts, control.CodeConflict, cannot+"the members have not answered yet",
			"try again when the cluster has a quorum")
	}
	against, keeps := policy.AgainstJobLeft(r.View, policy.Rollout{
		Upgrade: last.Etcd, Downgrade: last.Downgrade, Job: true,
		Over: last.State == record.RolloutAborted || last.State == record.RolloutDone,
	}, req.Version, req.Downgrade)
	return keeps, refused(cannot, against)
}

// rolloutHosts returns the hosts of a new rollout, chosen from those with a host record.
func rolloutHosts(found cluster.Range, prefix string, req control.RolloutRequest,
	running map[record.MemberID]cluster.Status,
) ([]policy.RolloutHost, error) {
	const cannot = "cannot start the rollout: "
	var present []policy.RolloutHost
	for _, pair := range found.Pairs {
		h, err := round.DecodeHost(pair, strings.TrimPrefix(pair.Key, prefix))
		if err != nil {
			u := policy.Unreadable{Kind: policy.RecordHost, Key: pair.Key, Why: err.Error()}
			if err := refused(cannot, policy.AgainstUnread(u, len(req.Hosts) > 0)); err != nil {
				return nil, err
			}
			continue
		}
		present = append(present, policy.RolloutHost{
			ID: h.ID, Name: h.Name, Manage: h.Mode == string(policy.Manage), Member: h.MemberID != 0,
			Etcd: running[h.MemberID].Version, PeerURL: h.PeerURL,
			NewPeerURL: h.NewPeerURL, NewClientURL: h.NewClientURL,
			PeerTLS: policy.PeerTLS(h.PeerTLS), PeerTLSProblem: h.PeerTLSProblem,
			External: h.External,
			Next:     policy.NextEtcd{Version: h.NextEtcd, Problem: h.NextEtcdProblem},
			Database: databaseOf(running[h.MemberID]), Forced: req.Force,
		})
	}
	chosen, against := policy.RolloutHosts(present, req.Hosts, req.Work, req.Version)
	return chosen, refused(cannot, against)
}

// rolloutPreview returns what a rollout would do. Unless the operator has named the hosts, it also lists the members
// whose hosts are left out because they have no host record now.
func (o *Operator) rolloutPreview(would record.Rollout, chosen []policy.RolloutHost, named bool) control.Rollout {
	out := publish.RolloutOf(would, nil)
	out.DryRun = true
	r := o.opt.Rounds.Reached()
	if r == nil {
		return out
	}
	if !named {
		out.Absent = policy.AbsentMembers(r.View)
	}
	if out.Version != "" {
		out.Unchecked = policy.UncheckedHosts(chosen)
	}
	switch {
	case out.Work == policy.WorkReaddress:
		out.Steps = policy.ReaddressPlan(r.View, chosen)
	case out.Downgrade:
		out.Steps = policy.DowngradePlan(r.View, chosen, out.Version)
	case out.Work == policy.WorkCommand && out.Version != "":
		out.Steps = policy.UpgradePlan(r.View, chosen, out.Version, would.Hold)
		out.Warnings = policy.UpgradeWarnings(r.View, chosen, out.Version)
	case out.Work == policy.WorkDefrag:
		out.Steps = policy.DefragPlan(r.View, chosen)
		for i, h := range chosen { // out.Hosts has the same order
			out.Hosts[i].Database, out.Hosts[i].Text = &chosen[i].Database, policy.DefragText(h)
		}
	}
	return out
}

// waitingHosts returns the hosts of a rollout that has not begun, for its record.
func waitingHosts(chosen []policy.RolloutHost) []record.RolloutHost {
	out := make([]record.RolloutHost, len(chosen))
	for i, h := range chosen {
		out[i] = record.RolloutHost{ID: h.ID, Name: h.Name, State: record.HostWaiting}
		if h.Skipped {
			out[i].State = record.HostSkipped
		}
	}
	return out
}

// databaseOf returns the size of a member's database; zero if the member has not answered.
func databaseOf(s cluster.Status) policy.Database {
	return policy.Database{Size: s.DBSize, InUse: s.DBInUse, Quota: s.DBQuota}
}

// running returns the members' statuses from the last round in which the cluster was reachable.
func (o *Operator) running() map[record.MemberID]cluster.Status {
	out := map[record.MemberID]cluster.Status{}
	if r := o.opt.Rounds.Reached(); r != nil {
		for id, s := range r.Statuses {
			out[record.MemberID(id)] = s
		}
	}
	return out
}

// SetRollout resumes, pauses or aborts a rollout. No host begins in a paused or aborted rollout.
func (o *Operator) SetRollout(ctx context.Context, state, by string) (control.Rollout, error) {
	const cannot = "cannot change the rollout: "
	found, at, err := o.readRollout(ctx)
	bad, unread := errors.AsType[*unreadable](err)
	switch {
	case unread && state == record.RolloutAborted:
		return o.abortUnreadable(ctx, bad, by)
	case err != nil:
		return control.Rollout{}, o.refuseRead(cannot, err)
	case found == nil:
		return control.Rollout{}, refuse(control.Conflicts, control.CodeConflict, cannot+"there is none",
			"quorumctl rollout start")
	case found.State == state:
		return publish.RolloutOf(*found, o.operation()), nil
	}
	if err := refused(cannot, policy.RolloutState(found.State).AgainstChange()); err != nil {
		return control.Rollout{}, err
	}
	found.State, found.Text = state, "by "+by
	if state == record.RolloutRunning {
		found.Since = o.opt.Wall().UTC()
		found.ResumedAt = found.Since
		found.Resumed++
	}
	if err := o.writeRollout(ctx, *found, at, cannot); err != nil {
		return control.Rollout{}, err
	}
	o.note(ctx, "ROLLOUT_"+strings.ToUpper(state), "rollout "+found.ID+" is "+state+", by "+by)
	o.opt.Wake()
	return publish.RolloutOf(*found, o.operation()), nil
}

// operation returns the last observed operation in flight.
func (o *Operator) operation() *record.Op {
	if r := o.opt.Rounds.Reached(); r != nil {
		return r.Op
	}
	return nil
}

func (o *Operator) readRollout(ctx context.Context) (*record.Rollout, int64, error) {
	found, err := o.opt.Etcd.Read(ctx, cluster.Span{Start: o.keys.Rollout()})
	if err != nil || len(found.Pairs) == 0 {
		return nil, 0, err
	}
	rollout, err := decoded[record.Rollout](policy.RecordRollout, found.Pairs[0])
	return &rollout, found.Pairs[0].ModRevision, err
}

func (o *Operator) writeRollout(ctx context.Context, rollout record.Rollout, at int64, cannot string) error {
	value, err := record.Encode(rollout)
	if err != nil {
		return refuse(control.Wrong, control.CodeConflict, cannot+err.Error(), "name fewer hosts with --hosts")
	}
	key := o.keys.Rollout()
	answer, err := o.opt.Etcd.Txn(ctx, []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", at)},
		clientv3.OpPut(key, string(value)))
	switch {
	case err != nil:
		return o.refuseCall(cannot, err, "quorumctl rollout status shows its state")
	case !answer.Succeeded:
		return refuse(control.Conflicts, control.CodeConflict, cannot+"it has changed in the meantime",
			"check it with quorumctl rollout status, then try again")
	}
	return nil
}

func (o *Operator) abortUnreadable(ctx context.Context, u *unreadable, by string) (control.Rollout, error) {
	if err := o.discard(ctx, u); err != nil {
		return control.Rollout{}, err
	}
	text := fmt.Sprintf("its record was unreadable and was deleted by %s: %s", by, u.Why)
	o.note(ctx, "ROLLOUT_ABORTED", text)
	o.opt.Wake()
	return control.Rollout{State: record.RolloutAborted, Text: text, By: by}, nil
}
