// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"net/http"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/local"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/publish"
	"github.com/quorumd/quorumd/agent/record"
)

// Codes of what an operator's request is refused with, beside those of package control.
const (
	codeClusterExists = string(policy.ClusterExists)
	codeUnreachable   = string(policy.ClusterUnreachable)
	codeNotYet        = string(policy.Starting)
	codeObserve       = string(policy.ModeObserve)
)

func refuse(status int, code, message, hint string) error {
	return &control.Error{Status: status, Code: code, Message: message, Hint: hint}
}

// History gives the newest lines, oldest first.
func (a *Agent) History(ctx context.Context, limit int) ([]control.HistoryLine, error) {
	lines, err := a.told.Journal().Read(ctx, limit)
	if cluster.Denied(err) {
		err = a.refuseCall("cannot read the history: ", err, "")
	}
	return lines, err
}

// Bootstrap records the request to make a new cluster of this host, unless MayBootstrap refuses it.
func (a *Agent) Bootstrap(ctx context.Context, by string) error {
	if a.told.Current() != nil && a.files.Bootstrap() != nil {
		return nil // asked twice is asked once
	}
	if err := a.MayBootstrap(ctx); err != nil {
		return err
	}
	if err := local.Within(ctx, func() error { return a.files.RequestBootstrap(by, a.opt.Wall()) }); err != nil {
		return err
	}
	a.log.Warn("bootstrap requested", "by", by)
	a.Wake()
	return nil
}

// MayBootstrap says why a new cluster would not be made of this host now, and changes nothing. It is refused when there
// is any sign of a cluster: "new" happens once.
func (a *Agent) MayBootstrap(ctx context.Context) error {
	const cannot = "cannot bootstrap: "
	r := a.told.Current()
	if r == nil {
		return refuse(http.StatusServiceUnavailable, codeNotYet, cannot+"quorumd has just started",
			"try again in a few seconds")
	}
	v := r.View
	switch {
	case v.Self.Mode != policy.Manage:
		return refuse(http.StatusConflict, codeObserve, cannot+"quorumd only observes",
			"set mode: manage and restart quorumd")
	case v.Cluster.Listed:
		return refuse(http.StatusConflict, codeClusterExists, cannot+"a cluster answers already",
			"nothing is to do: this host joins it; see quorumctl explain")
	case v.Bootstrap.Done:
		return refuse(http.StatusConflict, codeClusterExists,
			cannot+"this host has belonged to cluster "+record.MemberID(v.Cluster.ExpectedID).String(),
			"bring that cluster back; an empty disk does not make a new one")
	case v.Bootstrap.Seen != 0:
		return refuse(http.StatusConflict, codeClusterExists,
			cannot+"this host has seen cluster "+record.MemberID(v.Bootstrap.Seen).String()+
				", which does not answer now",
			"bring that cluster back, and this host joins it; only if it is gone for good, remove "+a.files.SeenPath()+
				" and restart quorumd")
	case v.Data.State == policy.DataUnknown:
		return refuse(http.StatusServiceUnavailable, codeNotYet,
			cannot+"the data directory has not been looked at yet: "+v.Data.Detail, "try again in a few seconds")
	case v.Data.State != policy.DataEmpty:
		return refuse(http.StatusConflict, codeClusterExists, cannot+"there is data in "+a.opt.Config.Etcd.DataDir,
			"start etcd on it, or move it away if nobody needs it")
	}
	return a.nobodyElse(ctx)
}

// nobodyElse makes sure that no etcd runs at the other endpoints.
func (a *Agent) nobodyElse(ctx context.Context) error {
	c := a.opt.Config
	err := cluster.Silent(ctx, a.opt.Etcd.Diagnose, c.Cluster.Endpoints, c.Etcd.ClientURL)
	if e, is := errors.AsType[*cluster.NotSilent](err); is {
		return refuse(http.StatusConflict, codeClusterExists, "cannot bootstrap: "+e.Why, e.Remedy)
	}
	return err
}

// Pause writes the pause of the whole cluster, under a lease that ends with it.
func (a *Agent) Pause(ctx context.Context, req control.PauseRequest, by string) (control.Pause, error) {
	now := a.opt.Wall()
	pause := record.Pause{By: by, Host: a.opt.Config.Host.Name, Reason: req.Reason, Since: now, Until: now.Add(req.For)}
	value, err := record.Encode(pause)
	if err != nil {
		return control.Pause{}, err
	}
	lease, _, err := a.opt.Etcd.Grant(ctx, int64(req.For.Round(time.Second)/time.Second))
	if err == nil {
		_, err = a.opt.Etcd.Txn(ctx, nil, clientv3.OpPut(a.keys.Pause(), string(value), clientv3.WithLease(lease)))
	}
	if err != nil {
		return control.Pause{}, a.refuseCall("cannot pause: ", err,
			"without a quorum no agent takes a step in any case")
	}
	a.note(ctx, "PAUSED", "paused by "+by+": "+req.Reason)
	a.Wake()
	return control.Pause{By: by, Reason: req.Reason, Since: pause.Since, Until: pause.Until}, nil
}

// Resume ends the pause.
func (a *Agent) Resume(ctx context.Context, by string) error {
	found, err := a.opt.Etcd.Read(ctx, cluster.Span{Start: a.keys.Pause()})
	if err == nil && len(found.Pairs) == 0 {
		return refuse(http.StatusConflict, control.CodeNotPaused, "cannot resume: nothing is paused",
			"quorumctl status")
	}
	if _, err := a.opt.Etcd.Txn(ctx, nil, clientv3.OpDelete(a.keys.Pause())); err != nil {
		return a.refuseCall("cannot resume: ", err, "try again when the cluster has a quorum")
	}
	a.note(ctx, "RESUMED", "resumed by "+by)
	a.Wake()
	return nil
}

// ReleaseOp deletes the record of the operation in flight, at a person's word.
func (a *Agent) ReleaseOp(ctx context.Context, req control.ReleaseRequest, by string) error {
	const cannot = "cannot release the operation: "
	found, err := a.opt.Etcd.Read(ctx, cluster.Span{Start: a.keys.Op()})
	switch {
	case err != nil:
		return a.refuseCall(cannot, err, "try again when the cluster has a quorum")
	case len(found.Pairs) == 0:
		return a.releaseStanding(ctx, req, by)
	}
	op, err := decoded[record.Op](policy.RecordOp, found.Pairs[0])
	if u, unread := errors.AsType[*unreadable](err); unread {
		return a.releaseUnreadable(ctx, u, req.Reason, by)
	}
	// not the one that was shown
	if r := a.told.Current(); r != nil && r.Op != nil && r.OpAt != found.Pairs[0].ModRevision {
		return refuse(http.StatusConflict, control.CodeConflict, cannot+"it has moved on meanwhile",
			"quorumctl op show, and try again")
	}
	conditions := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(a.keys.Op()), "=", found.Pairs[0].ModRevision)}
	then := []clientv3.Op{clientv3.OpDelete(a.keys.Op())}
	if op.Kind == policy.KindCycle {
		put, err := a.releaseOf(op, req, by)
		if err != nil {
			return refuse(http.StatusConflict, control.CodeConflict, cannot+err.Error(), "give a shorter --reason")
		}
		then = append(then, put)
	}
	rollout, err := a.stopFor(ctx, op, by)
	if err != nil {
		return a.refuseCall(cannot, err, "try again when the cluster has a quorum")
	}
	for _, also := range rollout {
		conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(also.Key), "=", also.Seen))
		then = append(then, clientv3.OpPut(also.Key, string(also.Value)))
	}
	answer, err := a.opt.Etcd.Txn(ctx, conditions, then...)
	switch {
	case err != nil:
		return a.refuseCall(cannot, err, "quorumctl op show tells whether it is gone")
	case !answer.Succeeded:
		return refuse(http.StatusConflict, control.CodeConflict, cannot+"it has moved on meanwhile",
			"quorumctl op show, and try again")
	}
	a.note(ctx, "RELEASED", op.Kind+" of "+op.HostName+" in phase "+op.Phase+" released by "+by+": "+req.Reason)
	a.Wake()
	return nil
}

// note writes what a person has done into the history.
func (a *Agent) note(ctx context.Context, code, text string) {
	var revision int64
	if r := a.told.Current(); r != nil {
		revision = r.Revision
	}
	a.log.Warn("by an operator", "code", code, "text", text)
	a.told.Journal().Write(ctx, revision, publish.Entry{Kind: "operator", Code: code, Text: text})
}
