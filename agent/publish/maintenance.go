// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// Maintenance returns a request as an API value, with the progress observed in the round.
func (p *Publisher) Maintenance(r *round.Round, k *hoststate.Request) control.Maintenance {
	out := k.Maintenance()
	out.Overdue = round.Overdue(out.Until, p.opt.Wall())
	v := p.viewOf(r, k)
	out.State = policy.StateOf(v)
	out.ByOthers = policy.ExternallyManaged(v)
	return out
}

// viewOf returns the view of a round with the current request, which may be newer than the round.
func (p *Publisher) viewOf(r *round.Round, k *hoststate.Request) policy.View {
	v, now := r.View, policy.Asked{}
	if v.Asked != nil {
		now = *v.Asked
	}
	if r.Request == nil || !r.Request.Since.Equal(k.Since) { // the observed program belongs to another request
		now.Command = policy.Hooks{}
	}
	now.Request = k.At(p.opt.BootID)
	now.Over = now.Done()
	v.Asked = &now
	return v
}

// removalStatus returns the removal requested on this host, and how the last one ended.
func (p *Publisher) removalStatus(r *round.Round) (*control.Removal, *control.RemovalEnd) {
	k, last := p.files.Removals()
	if k == nil {
		return nil, last
	}
	state := control.RemovalWaiting
	if r != nil && r.Removes(p.opt.Config.Host.ID) {
		state = control.RemovalRunning
	}
	return &control.Removal{RequestedRemoval: k.RequestedRemoval, State: state}, last
}

// RolloutOf returns a rollout as an API value. The operation in flight, if any, identifies the current host.
func RolloutOf(r record.Rollout, op *record.Op) control.Rollout {
	out := control.Rollout{
		ID: r.ID, Work: policy.Work(r.Work), Command: r.Command, Version: r.Etcd, Reason: r.Reason, By: r.By,
		State: r.State, Text: r.Text, Hold: r.Hold, Downgrade: r.Downgrade, Started: r.Started,
	}
	for _, h := range r.Hosts {
		host := control.RolloutHost{ID: h.ID, Name: h.Name, State: h.State, Seconds: h.Seconds, TurnSeconds: h.Turn}
		if h.State == record.HostWaiting && op.Of(h.ID) && policy.TakesDown(op.Kind) {
			host.State = control.RolloutHostCurrent
		}
		out.Hosts = append(out.Hosts, host)
	}
	return out
}
