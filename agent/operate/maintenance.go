// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/local"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// AskMaintenance notes on this host's disk that it shall be taken down. Asked again for the same work,
// it gives the one that stands, with the new reason and time.
func (o *Operator) AskMaintenance(ctx context.Context, req control.MaintenanceRequest,
	by string,
) (control.Maintenance, error) {
	const cannot = "cannot ask for maintenance: "
	r := o.opt.Rounds.Current()
	switch {
	case r == nil:
		return control.Maintenance{}, refuse(control.NotNow, codeNotYet,
			cannot+"quorumd has just started", "try again in a few seconds")
	case r.View.Self.Mode != policy.Manage:
		return control.Maintenance{}, refuse(control.Conflicts, codeObserve, cannot+"quorumd only observes",
			"set mode: manage and restart quorumd; until then, take turns by hand")
	case req.Work == control.WorkReboot && !req.External && !o.opt.Reboots:
		return control.Maintenance{}, refuse(control.Conflicts, control.CodeConflict,
			cannot+"quorumd has no way to reboot this machine", "quorumctl maintenance on, and reboot by hand")
	case req.Work == control.WorkRestart && req.KeepRunning:
		return control.Maintenance{}, refuse(control.Wrong, control.CodeConflict,
			cannot+"a restart that keeps etcd running is none", "leave one of the two out")
	case !policy.MayBeAsked(r.View, policy.Work(req.Work)):
		return control.Maintenance{}, refuse(control.Conflicts, string(policy.EtcdExternal),
			cannot+"others run this host's etcd, and quorumd cannot stop it for a "+req.Work,
			"quorumctl maintenance on gives the turn to whoever runs it; "+policy.EtcdExternal.Info().Remedy)
	}
	if asked, _ := o.opt.Files.Asked(); asked == nil && r.Op.Is(policy.KindCycle, o.opt.Config.Host.ID) {
		return control.Maintenance{}, refuse(control.Conflicts, control.CodeConflict,
			cannot+"the last one is just coming to its end", "try again in a few seconds")
	}
	if policy.Work(req.Work).RunsProgram() {
		if why := o.unfitFor(ctx, req.Command); why != "" {
			return control.Maintenance{}, refuse(control.Conflicts, control.CodeConflict, cannot+why, commandHint)
		}
	}
	wish := local.Wish{
		Work: policy.Work(req.Work), Program: req.Command, Reason: req.Reason, By: by, For: req.For, At: o.opt.Wall(),
		BootID: o.opt.BootID, KeepRunning: req.KeepRunning, External: req.External, Hurried: req.Hurried,
	}
	var against *local.Request
	err := local.Within(ctx, func() (err error) {
		against, err = o.opt.Files.Ask(wish)
		return err
	})
	switch {
	case err != nil:
		return control.Maintenance{}, refuse(control.NotNow, codeNotYet, cannot+err.Error(),
			"see whether paths.state can be written")
	case against != nil:
		return control.Maintenance{}, stands(cannot, against, wish.Same(against))
	}
	o.opt.Logger.Warn("asked to be taken down", "work", req.Work, "by", by, "reason", req.Reason, "for", req.For)
	o.opt.Wake()
	asked, _ := o.opt.Files.Asked()
	if asked == nil { // somebody has taken it back in this moment
		return control.Maintenance{}, refuse(control.Conflicts, control.CodeConflict,
			cannot+"it was withdrawn at once", "quorumctl maintenance status")
	}
	return o.opt.Rounds.Maintenance(r, asked), nil
}

// stands refuses a wish because of the request that stands against it.
func stands(cannot string, k *local.Request, same bool) error {
	switch {
	case k.Over:
		return refuse(control.Conflicts, control.CodeConflict,
			cannot+"the last one, of "+k.By+", is just coming to its end",
			"wait for it: quorumctl maintenance status")
	case same:
		return refuse(control.Conflicts, control.CodeConflict,
			cannot+"the command "+k.Program+", asked for by "+k.By+", was started already, and is not run again",
			"wait until the host is back, and ask again: quorumctl maintenance status")
	}
	return refuse(control.Conflicts, control.CodeConflict,
		cannot+"another "+string(k.Work)+" is asked for already, by "+k.By+": "+k.Reason,
		"wait for it, or end it first: quorumctl maintenance off")
}

// EndMaintenance says that what was asked is over. What has not begun is withdrawn; a host that is down
// is brought back.
func (o *Operator) EndMaintenance(ctx context.Context, by string) error {
	r := o.opt.Rounds.Current()
	word := local.Word{By: by, At: o.opt.Wall()}
	if r != nil {
		word.Waives = r.View.Asked != nil && r.View.Asked.After.State == policy.HooksFailed
		if r.Rollout != nil && r.Rollout.State == record.RolloutRunning {
			word.Rolling = r.Rollout
		}
	}
	again := false
	err := local.Within(ctx, func() (err error) {
		again, err = o.opt.Files.Finish(word)
		return err
	})
	if err != nil {
		return refuse(control.NotNow, codeNotYet, "cannot end the maintenance: "+err.Error(),
			"see whether paths.state can be written")
	}
	if again {
		return refuse(control.Conflicts, control.CodeConflict,
			"cannot end the maintenance: its turn has not come, and the rollout that runs would ask for it again",
			"quorumctl rollout pause, or quorumctl rollout abort")
	}
	if r != nil && r.Request != nil {
		o.opt.Logger.Warn("maintenance is over", "by", by)
	}
	o.opt.Wake()
	return nil
}

// Unhurry says that the machine does not go down after all: what is asked waits for its turn as any other.
func (o *Operator) Unhurry(ctx context.Context) error {
	return local.Within(ctx, o.opt.Files.Unhurry)
}

// commandHint is what to do about a command that cannot be run here.
const commandHint = "put the program into commands.d, beside the hooks, on every host, owned by root and writable by " +
	"nobody else"

// unfitFor tells why a command could not be run on this host, or nothing.
func (o *Operator) unfitFor(ctx context.Context, command string) string {
	if o.opt.Commands == nil {
		return "this agent has no way to run a command"
	}
	if err := local.Within(ctx, func() error { return o.opt.Commands.Find(command) }); err != nil {
		return err.Error()
	}
	return ""
}
