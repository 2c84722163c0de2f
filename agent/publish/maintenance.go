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

// Maintenance shows what was asked, by what the round has seen.
func (p *Publisher) Maintenance(r *round.Round, k *hoststate.Request) control.Maintenance {
	out := control.Maintenance{
		Work: string(k.Work), Command: k.Program, Reason: k.Reason, By: k.By, Since: k.Since,
		KeepRunning: k.KeepRunning, External: k.External,
		Rollout: k.Rollout,
	}
	out.Until = k.Until()
	out.Overdue = round.Overdue(out.Until, p.opt.Wall())
	v := p.viewOf(r, k)
	out.State = string(policy.StateOf(v))
	out.ByOthers = policy.ExternallyManaged(v)
	return out
}

// viewOf gives the view of a round, with what is asked by now: it may have been asked since.
func (p *Publisher) viewOf(r *round.Round, k *hoststate.Request) policy.View {
	v, now := r.View, policy.Asked{}
	if v.Asked != nil {
		now = *v.Asked
	}
	if r.Request == nil || !r.Request.Since.Equal(k.Since) { // the program is that of something else
		now.Command = policy.Hooks{}
	}
	now.Work, now.Over, now.Stopped = k.Work, k.Standing(p.opt.BootID).Done(), k.Stopped
	v.Asked = &now
	return v
}

func endOf(e *hoststate.End) *control.MaintenanceEnd {
	return &control.MaintenanceEnd{
		Work: string(e.Work), Reason: e.Reason, By: e.By, Since: e.Since, Ended: e.Ended, Code: string(e.Code),
		Text: e.Text,
	}
}

// RemovalOf shows what this host was asked to remove.
func RemovalOf(k *hoststate.Removal, state string) control.Removal {
	return control.Removal{
		MemberID: k.MemberID.String(), Name: k.Name, Reason: k.Reason, By: k.By, Live: k.Live, Since: k.Since,
		Until: k.Until, State: state,
	}
}

// removalStatus shows what this host was asked to remove, and how the last one ended.
func (p *Publisher) removalStatus(r *round.Round) (*control.Removal, *control.RemovalEnd) {
	k, last := p.files.Removals()
	var now *control.Removal
	var end *control.RemovalEnd
	if k != nil {
		state := control.RemovalWaiting
		if r != nil && r.Removes(p.opt.Config.Host.ID) {
			state = control.RemovalRunning
		}
		asked := RemovalOf(k, state)
		now = &asked
	}
	if last != nil {
		end = &control.RemovalEnd{
			MemberID: last.MemberID.String(), Name: last.Name, Reason: last.Reason, By: last.By, Since: last.Since,
			Ended: last.Ended, Code: string(last.Code), Text: last.Text,
		}
	}
	return now, end
}

// RolloutOf shows a rollout. The operation in flight, if there is one, tells which host is next.
func RolloutOf(r record.Rollout, op *record.Op) control.Rollout {
	out := control.Rollout{
		ID: r.ID, Work: r.Work, Command: r.Command, Version: r.Etcd, Reason: r.Reason, By: r.By,
		State: r.State, Text: r.Text, Started: r.Started,
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
