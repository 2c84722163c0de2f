// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net/http"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/local"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// AskMaintenance notes on this host's disk that it shall be taken down. Asked again for the same work,
// it gives the one that stands, with the new reason and time.
func (a *Agent) AskMaintenance(ctx context.Context, req control.MaintenanceRequest,
	by string,
) (control.Maintenance, error) {
	const cannot = "cannot ask for maintenance: "
	r := a.told.Current()
	switch {
	case r == nil:
		return control.Maintenance{}, refuse(http.StatusServiceUnavailable, codeNotYet,
			cannot+"quorumd has just started", "try again in a few seconds")
	case r.View.Self.Mode != policy.Manage:
		return control.Maintenance{}, refuse(http.StatusConflict, codeObserve, cannot+"quorumd only observes",
			"set mode: manage and restart quorumd; until then, take turns by hand")
	case req.Work == control.WorkReboot && !req.External && a.opt.Machine == nil:
		return control.Maintenance{}, refuse(http.StatusConflict, control.CodeConflict,
			cannot+"quorumd has no way to reboot this machine", "quorumctl maintenance on, and reboot by hand")
	case req.Work == control.WorkRestart && req.KeepRunning:
		return control.Maintenance{}, refuse(http.StatusBadRequest, control.CodeConflict,
			cannot+"a restart that keeps etcd running is none", "leave one of the two out")
	}
	if asked, _ := a.files.Asked(); asked == nil && r.Op != nil && r.Op.Kind == policy.KindCycle &&
		r.Op.Host == a.opt.Config.Host.ID {
		return control.Maintenance{}, refuse(http.StatusConflict, control.CodeConflict,
			cannot+"the last one is just coming to its end", "try again in a few seconds")
	}
	if req.Work == control.WorkCommand {
		if why := a.unfitFor(ctx, req.Command); why != "" {
			return control.Maintenance{}, refuse(http.StatusConflict, control.CodeConflict, cannot+why, commandHint)
		}
	}
	var taken, ran *local.Request
	err := a.changeAsk(ctx, func(k *local.Request) (*local.Request, *local.End) {
		if k != nil && (k.Over || k.Work != policy.Work(req.Work) || k.Program != req.Command ||
			k.KeepRunning != req.KeepRunning || k.External != req.External) {
			taken = k
			k.Hurried = k.Hurried || (req.Hurried && k.OutlastsReboot()) // the machine goes down now
			return k, nil
		}
		if k != nil && k.Ran != "" { // it runs once
			ran = k
			return k, nil
		}
		if k == nil {
			k = &local.Request{
				Work: policy.Work(req.Work), Program: req.Command, By: by, Since: a.opt.Wall().UTC(),
				AskedIn: a.opt.BootID, KeepRunning: req.KeepRunning, External: req.External,
			}
		}
		k.Hurried = k.Hurried || req.Hurried
		k.Reason = req.Reason
		k.Lasts(req.For, a.opt.Wall())
		return k, nil
	})
	switch {
	case err != nil:
		return control.Maintenance{}, refuse(http.StatusServiceUnavailable, codeNotYet, cannot+err.Error(),
			"see whether paths.state can be written")
	case ran != nil:
		return control.Maintenance{}, refuse(http.StatusConflict, control.CodeConflict,
			cannot+"the command "+ran.Program+", asked for by "+ran.By+", was started already, and is not run again",
			"wait until the host is back, and ask again: quorumctl maintenance status")
	case taken != nil && taken.Over:
		return control.Maintenance{}, refuse(http.StatusConflict, control.CodeConflict,
			cannot+"the last one, of "+taken.By+", is just coming to its end",
			"wait for it: quorumctl maintenance status")
	case taken != nil:
		return control.Maintenance{}, refuse(http.StatusConflict, control.CodeConflict,
			cannot+"another "+string(taken.Work)+" is asked for already, by "+taken.By+": "+taken.Reason,
			"wait for it, or end it first: quorumctl maintenance off")
	}
	a.log.Warn("asked to be taken down", "work", req.Work, "by", by, "reason", req.Reason, "for", req.For)
	a.Wake()
	asked, _ := a.files.Asked()
	if asked == nil { // somebody has taken it back in this moment
		return control.Maintenance{}, refuse(http.StatusConflict, control.CodeConflict,
			cannot+"it was withdrawn at once", "quorumctl maintenance status")
	}
	return a.told.Maintenance(r, asked), nil
}

// EndMaintenance says that what was asked is over. What has not begun is withdrawn; a host that is down
// is brought back.
func (a *Agent) EndMaintenance(ctx context.Context, by string) error {
	r := a.told.Current()
	failedAfter := r != nil && r.View.Asked != nil && r.View.Asked.After.State == policy.HooksFailed
	rolling := r != nil && r.Rollout != nil && r.Rollout.State == record.RolloutRunning
	again := false // the rollout would ask for it at once
	err := a.changeAsk(ctx, func(k *local.Request) (*local.Request, *local.End) {
		switch {
		case k == nil:
			return nil, nil
		case k.BootID == "" && !k.Stopped && rolling && k.Rollout == r.Rollout.ID:
			again = true
			return k, nil
		case k.BootID == "" && !k.Stopped:
			return nil, k.Ended(policy.Withdrawn, "by "+by, a.opt.Wall().UTC())
		}
		k.Over, k.Waived = true, k.Waived || failedAfter
		return k, nil
	})
	if err != nil {
		return refuse(http.StatusServiceUnavailable, codeNotYet, "cannot end the maintenance: "+err.Error(),
			"see whether paths.state can be written")
	}
	if again {
		return refuse(http.StatusConflict, control.CodeConflict,
			"cannot end the maintenance: its turn has not come, and the rollout that runs would ask for it again",
			"quorumctl rollout pause, or quorumctl rollout abort")
	}
	if r != nil && r.Request != nil {
		a.log.Warn("maintenance is over", "by", by)
	}
	a.Wake()
	return nil
}

// Unhurry says that the machine does not go down after all: what is asked waits for its turn as any other.
func (a *Agent) Unhurry(ctx context.Context) error {
	return a.changeAsk(ctx, func(k *local.Request) (*local.Request, *local.End) {
		if k != nil {
			k.Hurried = false
		}
		return k, nil
	})
}

// changeAsk changes what is asked at a person's word.
func (a *Agent) changeAsk(ctx context.Context, change func(k *local.Request) (*local.Request, *local.End)) error {
	return local.Within(ctx, func() error { return a.files.ChangeRequest(change) })
}
