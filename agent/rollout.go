// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/lock"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/publish"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// stopFor gives the rollout, stopped, when the operation of one of its hosts is released by a person: the
// next host must not go as if that one were back.
func (a *Agent) stopFor(ctx context.Context, op record.Op, by string) ([]lock.Also, error) {
	found, seen, err := a.readRollout(ctx)
	if _, unread := errors.AsType[*unreadable](err); unread {
		return nil, nil // it goes on for nobody
	}
	if err != nil || found == nil || found.State != record.RolloutRunning || op.Kind != policy.KindCycle ||
		!slices.Contains(found.Waiting(), op.Host) {
		return nil, err
	}
	found.State, found.Text = record.RolloutStopped, "the operation of "+op.HostName+" was released by "+by
	value, err := record.Encode(*found)
	return []lock.Also{{Key: a.keys.Rollout(), Seen: seen, Value: value}}, err
}

// StartRollout has one host after another taken down for the same work.
func (a *Agent) StartRollout(ctx context.Context, req control.RolloutRequest, by string) (control.Rollout, error) {
	const cannot = "cannot start the rollout: "
	if req.Work == control.WorkCommand {
		if why := a.unfitFor(ctx, req.Command); why != "" { // what is not even here is most likely a slip
			return control.Rollout{}, refuse(http.StatusConflict, control.CodeConflict, cannot+"on this host, "+why,
				commandHint)
		}
	}
	found, seen, err := a.readRollout(ctx)
	if err != nil {
		return control.Rollout{}, a.refuseRead(cannot, err)
	}
	if found != nil && (found.State == record.RolloutRunning || found.State == record.RolloutPaused) {
		return control.Rollout{}, refuse(http.StatusConflict, control.CodeConflict,
			cannot+"one of "+found.By+" is "+found.State+": "+found.Reason,
			"quorumctl rollout status; quorumctl rollout abort ends it")
	}
	hosts, err := a.opt.Etcd.Read(ctx, cluster.Span{Start: a.keys.Hosts(), End: a.keys.Lock()})
	if err != nil {
		return control.Rollout{}, a.refuseCall(cannot, err, "try again when the cluster has a quorum")
	}
	if hosts.Rest != "" && len(req.Hosts) == 0 { // all hosts are meant, and some are not known
		u := policy.Unreadable{
			Kind: policy.RecordHost, Key: hosts.Rest,
			Why: "it was not read, nor what follows, because too much lies before it",
		}
		return control.Rollout{}, refuse(http.StatusConflict, codeUnreadable, cannot+u.Key+": "+u.Why,
			u.Hint()+"; or name the hosts: --hosts")
	}
	rollout := record.Rollout{
		ID: strings.ToLower(rand.Text()[:8]), Work: req.Work, Command: req.Command, Etcd: req.Version,
		Reason: req.Reason, By: by,
		State: record.RolloutRunning, Started: a.opt.Wall().UTC(),
	}
	rollout.Since = rollout.Started
	if rollout.Hosts, err = rolloutHosts(hosts, a.keys.Hosts(), req, a.runningVersions()); err != nil {
		return control.Rollout{}, err
	}
	if len(rollout.Waiting()) == 0 {
		rollout.State, rollout.Text = record.RolloutDone, "no host had to be taken down"
	}
	if most, err := rollout.Room(); err != nil {
		return control.Rollout{}, refuse(http.StatusBadRequest, control.CodeConflict,
			fmt.Sprintf("%sits record of %d hosts would outgrow %d bytes before the last one is done: about %d of "+
				"them have room", cannot, len(rollout.Hosts), record.MaxRolloutBytes, most),
			"name fewer hosts, and start another rollout for the others when it is done: --hosts")
	}
	if err := a.writeRollout(ctx, rollout, seen, cannot); err != nil {
		return control.Rollout{}, err
	}
	a.note(ctx, "ROLLOUT_STARTED", fmt.Sprintf("%s of %d hosts started by %s: %s", req.Work, len(rollout.Hosts), by,
		req.Reason))
	a.Wake()
	return publish.RolloutOf(rollout, nil), nil
}

// runningVersions gives the version of every member that has told its own.
func (a *Agent) runningVersions() map[record.MemberID]string {
	out := map[record.MemberID]string{}
	if r := a.told.Reached(); r != nil {
		for id, s := range r.Statuses {
			out[record.MemberID(id)] = s.Version
		}
	}
	return out
}

// rolloutHosts gives the hosts of a new rollout: those that were named, or all that it concerns. A
// member that runs the wanted version already is skipped.
func rolloutHosts(found cluster.Range, prefix string, req control.RolloutRequest,
	running map[record.MemberID]string,
) ([]record.RolloutHost, error) {
	var out []record.RolloutHost
	named := slices.Clone(req.Hosts)
	for _, pair := range found.Pairs {
		h, err := round.DecodeHost(pair, strings.TrimPrefix(pair.Key, prefix))
		switch {
		case err != nil && len(req.Hosts) > 0:
			continue // if it is named, it is said below that it is not present
		case err != nil: // all hosts are meant, and this is one
			u := unreadable{
				policy.Unreadable{Kind: policy.RecordHost, Key: pair.Key, Why: err.Error()},
				pair.ModRevision,
			}
			return nil, refuse(http.StatusConflict, codeUnreadable, "cannot start the rollout: "+u.Error(),
				u.Hint()+"; or name the other hosts: --hosts")
		}
		i := slices.IndexFunc(named, func(name string) bool { return name == h.Name || name == h.ID })
		concerns := req.Work != control.WorkRestart || h.MemberID != 0
		if i < 0 && (len(req.Hosts) > 0 || !concerns) {
			continue
		}
		if i >= 0 {
			named = slices.Delete(named, i, i+1)
		}
		if h.Mode != string(policy.Manage) {
			return nil, refuse(http.StatusConflict, control.CodeConflict,
				"cannot start the rollout: quorumd on "+h.Name+" only observes",
				"set mode: manage there, or name the other hosts: --hosts")
		}
		host := record.RolloutHost{ID: h.ID, Name: h.Name, State: record.HostWaiting}
		if req.Version != "" && h.MemberID != 0 && running[h.MemberID] == req.Version {
			host.State = record.HostSkipped
		}
		out = append(out, host)
	}
	if len(named) > 0 {
		return nil, refuse(http.StatusBadRequest, control.CodeConflict,
			"cannot start the rollout: no host is present that is called "+strings.Join(named, ", "),
			"quorumctl status lists the hosts")
	}
	if len(out) == 0 {
		return nil, refuse(http.StatusConflict, control.CodeConflict,
			"cannot start the rollout: there is no host that it concerns", "quorumctl status lists the hosts")
	}
	return out, nil
}

// SetRollout lets a rollout go on, or stops it before the next host.
func (a *Agent) SetRollout(ctx context.Context, state, by string) (control.Rollout, error) {
	const cannot = "cannot change the rollout: "
	found, seen, err := a.readRollout(ctx)
	bad, unread := errors.AsType[*unreadable](err)
	switch {
	case unread && state == record.RolloutAborted:
		return a.abortUnreadable(ctx, bad, by)
	case err != nil:
		return control.Rollout{}, a.refuseRead(cannot, err)
	case found == nil:
		return control.Rollout{}, refuse(http.StatusConflict, control.CodeConflict, cannot+"there is none",
			"quorumctl rollout start")
	case found.State == state:
		return publish.RolloutOf(*found, a.operation()), nil
	case found.State == record.RolloutDone || found.State == record.RolloutAborted:
		return control.Rollout{}, refuse(http.StatusConflict, control.CodeConflict, cannot+"it is "+found.State,
			"quorumctl rollout start starts another")
	}
	found.State, found.Text = state, "by "+by
	if state == record.RolloutRunning {
		found.Since = a.opt.Wall().UTC()
	}
	if err := a.writeRollout(ctx, *found, seen, cannot); err != nil {
		return control.Rollout{}, err
	}
	a.note(ctx, "ROLLOUT_"+strings.ToUpper(state), "rollout "+found.ID+" is "+state+", by "+by)
	a.Wake()
	return publish.RolloutOf(*found, a.operation()), nil
}

// operation gives the operation in flight, as it was last seen.
func (a *Agent) operation() *record.Op {
	if r := a.told.Reached(); r != nil {
		return r.Op
	}
	return nil
}

func (a *Agent) readRollout(ctx context.Context) (*record.Rollout, int64, error) {
	found, err := a.opt.Etcd.Read(ctx, cluster.Span{Start: a.keys.Rollout()})
	if err != nil || len(found.Pairs) == 0 {
		return nil, 0, err
	}
	rollout, err := decoded[record.Rollout](policy.RecordRollout, found.Pairs[0])
	return &rollout, found.Pairs[0].ModRevision, err
}

func (a *Agent) writeRollout(ctx context.Context, rollout record.Rollout, seen int64, cannot string) error {
	value, err := record.Encode(rollout)
	if err != nil {
		return refuse(http.StatusBadRequest, control.CodeConflict, cannot+err.Error(), "name fewer hosts: --hosts")
	}
	key := a.keys.Rollout()
	answer, err := a.opt.Etcd.Txn(ctx, []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", seen)},
		clientv3.OpPut(key, string(value)))
	switch {
	case err != nil:
		return a.refuseCall(cannot, err, "quorumctl rollout status tells how it stands")
	case !answer.Succeeded:
		return refuse(http.StatusConflict, control.CodeConflict, cannot+"it has moved on meanwhile",
			"quorumctl rollout status, and try again")
	}
	return nil
}
