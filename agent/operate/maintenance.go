// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// RequestMaintenance records a maintenance request on this host's disk. A repeated request for the same work updates
// the reason, the announced duration and whether the work is interruptible, and returns the updated request. With
// DryRun it records nothing.
func (o *Operator) RequestMaintenance(ctx context.Context, req control.MaintenanceRequest,
	by string,
) (control.Maintenance, error) {
	const cannot = "cannot request maintenance: "
	now := o.opt.Wall().UTC()
	request := hoststate.Request{
		Request: policy.Request{
			By: by, Reason: req.Reason, Work: req.Work, Program: req.Command,
			KeepRunning: req.KeepRunning, External: req.External, Hurried: req.Hurried,
			Interruptible: req.Interruptible,
		},
		For: time.Duration(req.For), Since: now, AskedIn: o.opt.BootID,
	}
	r, err := o.current(cannot)
	if err != nil {
		return control.Maintenance{}, err
	}
	asked, _ := o.opt.Files.Asked()
	against := policy.AgainstRequest(r.View, asked != nil, request.Request, o.opt.CheckReboot != nil)
	if against == nil && request.Work == policy.WorkReboot && !request.External {
		against = o.unfitToReboot(ctx, "")
	}
	if against == nil && request.Work.RunsProgram() {
		against = o.unfitFor(ctx, req.Command, "")
	}
	if err := refused(cannot, against); err != nil {
		return control.Maintenance{}, err
	}
	if req.DryRun {
		return wouldBe(request), nil
	}
	err = onDisk(ctx, cannot, func() (*policy.Refusal, error) { return o.opt.Files.Ask(request) })
	if err != nil {
		return control.Maintenance{}, err
	}
	o.opt.Logger.Warn(
		"maintenance requested", "work", req.Work, "by", by, "reason", req.Reason, "for", time.Duration(req.For),
	)
	o.opt.Wake()
	if asked, _ = o.opt.Files.Asked(); asked == nil { // cancelled meanwhile
		return control.Maintenance{}, refuse(control.Conflicts, control.CodeConflict,
			cannot+"the request was cancelled in the meantime", "quorumctl maintenance status")
	}
	return o.opt.Rounds.Maintenance(r, asked), nil
}

// wouldBe returns the maintenance that RequestMaintenance would record, as if its operation began immediately.
func wouldBe(request hoststate.Request) control.Maintenance {
	out := request.Maintenance()
	out.Until, out.State, out.DryRun = request.Since.Add(request.For), policy.RequestWaiting, true
	return out
}

// EndMaintenance ends the requested maintenance. If nothing has been done for the request, it is cancelled. If the
// operation has stopped etcd, etcd is started again.
func (o *Operator) EndMaintenance(ctx context.Context, by string) error {
	r := o.opt.Rounds.Current()
	word := hoststate.Completion{By: by, At: o.opt.Wall()}
	if r != nil {
		word.Waives = r.View.Asked.Waives()
		if r.Rollout != nil && r.Rollout.State == record.RolloutRunning {
			word.Rolling = r.Rollout
		}
	}
	err := onDisk(ctx, "cannot end the maintenance: ", func() (*policy.Refusal, error) {
		return o.opt.Files.Finish(word)
	})
	if err != nil {
		return err
	}
	if r != nil && r.Request != nil {
		o.opt.Logger.Warn("maintenance ended", "by", by)
	}
	o.opt.Wake()
	return nil
}

// Unhurry records that the machine's shutdown was cancelled, so that the reboot request waits like any other request.
func (o *Operator) Unhurry(ctx context.Context) error {
	return hoststate.Within(ctx, o.opt.Files.Unhurry)
}

// unfitToReboot returns why a reboot of this host would fail, or nil. It is called before etcd is stopped.
func (o *Operator) unfitToReboot(ctx context.Context, where string) *policy.Refusal {
	if o.opt.CheckReboot == nil {
		return nil
	}
	cause := ""
	if err := o.opt.CheckReboot(ctx); err != nil {
		cause = err.Error()
	}
	return policy.AgainstReboot(where, cause)
}

// unfitFor returns why the command cannot run on this host, or nil.
func (o *Operator) unfitFor(ctx context.Context, command, where string) *policy.Refusal {
	cause := "the agent cannot run commands"
	if o.opt.Commands != nil {
		cause = ""
		if err := hoststate.Within(ctx, func() error { return o.opt.Commands.Find(command) }); err != nil {
			cause = err.Error()
		}
	}
	return policy.AgainstProgram(where, cause)
}
