// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/record"
)

// Pause pauses the whole cluster. The pause ends at the latest when its lease expires.
func (o *Operator) Pause(ctx context.Context, req control.PauseRequest, by string) (control.Pause, error) {
	now := o.opt.Wall()
	meant := time.Duration(req.For)
	pause := record.Pause{By: by, Host: o.opt.Config.Host.Name, Reason: req.Reason, Since: now, Until: now.Add(meant)}
	value, err := record.Encode(pause)
	if err != nil {
		return control.Pause{}, err
	}
	lease, _, err := o.opt.Etcd.Grant(ctx, int64(meant.Round(time.Second)/time.Second))
	if err == nil {
		_, err = o.opt.Etcd.Txn(ctx, nil, clientv3.OpPut(o.keys.Pause(), string(value), clientv3.WithLease(lease)))
	}
	if err != nil {
		return control.Pause{}, o.refuseCall("cannot pause: ", err,
			"without a quorum no agent takes a step anyway")
	}
	o.note(ctx, "PAUSED", "paused by "+by+": "+req.Reason)
	o.opt.Wake()
	return control.Pause{By: by, Reason: req.Reason, Since: pause.Since, Until: pause.Until}, nil
}

// Resume ends the pause.
func (o *Operator) Resume(ctx context.Context, by string) error {
	found, err := o.opt.Etcd.Read(ctx, cluster.Span{Start: o.keys.Pause()})
	switch {
	case err != nil:
		return o.refuseCall("cannot resume: ", err, "try again when the cluster has a quorum")
	case len(found.Pairs) == 0:
		return refuse(control.Conflicts, control.CodeNotPaused, "cannot resume: the cluster is not paused",
			"quorumctl status")
	}
	if _, err := o.opt.Etcd.Txn(ctx, nil, clientv3.OpDelete(o.keys.Pause())); err != nil {
		return o.refuseCall("cannot resume: ", err, "try again when the cluster has a quorum")
	}
	o.note(ctx, "RESUMED", "resumed by "+by)
	o.opt.Wake()
	return nil
}
