// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net/http"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// standing gives the operation that a host says it is in, of which somebody has deleted the record.
func standing(r *round.Round) (record.Op, bool) {
	for _, h := range r.Hosts {
		if h.Turn.IsZero() || r.Released.Frees(h.ID, h.Turn) {
			continue
		}
		return record.Op{Kind: policy.KindCycle, Host: h.ID, HostName: h.Name, Work: h.Wants, Started: h.Turn}, true
	}
	return record.Op{}, false
}

// releaseOf writes that a person has released an operation: without that, its host takes the record for deleted.
func (a *Agent) releaseOf(op record.Op, req control.ReleaseRequest, by string) (clientv3.Op, error) {
	value, err := record.Encode(record.Release{
		Host: op.Host, Started: op.Started, Time: a.opt.Wall().UTC(), By: by,
		Reason: req.Reason,
	})
	return clientv3.OpPut(a.keys.Release(op.Host), string(value)), err
}

// releaseStanding releases an operation that only its own host still tells of: somebody has deleted its record.
func (a *Agent) releaseStanding(ctx context.Context, req control.ReleaseRequest, by string) error {
	const cannot = "cannot release the operation: "
	r := a.told.Current()
	if r == nil {
		return refuse(http.StatusServiceUnavailable, codeNotYet, cannot+"quorumd has just started",
			"try again in a few seconds")
	}
	op, found := standing(r)
	if !found {
		return refuse(http.StatusConflict, control.CodeConflict, cannot+"there is none", "quorumctl op show")
	}
	put, err := a.releaseOf(op, req, by)
	if err != nil {
		return refuse(http.StatusConflict, control.CodeConflict, cannot+err.Error(), "give a shorter --reason")
	}
	answer, err := a.opt.Etcd.Txn(ctx, []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(a.keys.Op()), "=", 0)}, put)
	switch {
	case err != nil:
		return a.refuseCall(cannot, err, "quorumctl op show")
	case !answer.Succeeded:
		return refuse(http.StatusConflict, control.CodeConflict, cannot+"its host has just recorded it again",
			"quorumctl op show, and try again")
	}
	a.note(ctx, "RELEASED", op.Kind+" of "+op.HostName+" whose record was deleted, released by "+by+": "+req.Reason)
	a.Wake()
	return nil
}
