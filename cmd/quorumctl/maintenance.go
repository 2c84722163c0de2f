// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/agent/policy"
)

func (a *app) maintenanceCommand() *cobra.Command {
	return parent(&cobra.Command{
		Use:     "maintenance",
		GroupID: groupOperate,
		Short:   "Take this host down for work, and bring it back",
		Example: examples("quorumctl maintenance on --reason 'new disk' --for 1h",
			"quorumctl maintenance status", "quorumctl maintenance off"),
	}, a.maintenanceOnCommand(), a.maintenanceOffCommand(), a.maintenanceStatusCommand())
}

// waitFlags holds the flags of commands that wait.
type waitFlags struct {
	timeout time.Duration
	noWait  bool
	isSet   func() bool // reports whether --wait was given
}

func (w *waitFlags) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	durationVar(flags, &w.timeout, "wait", 0, "give up waiting after this time, such as 10m (default: never)")
	flags.Lookup("wait").NoOptDefVal = "0s"
	flags.BoolVar(&w.noWait, "no-wait", false, "return at once; follow with quorumctl maintenance status")
	w.isSet = func() bool { return flags.Changed("wait") }
}

// onlyWait declares --wait alone, for a command that does not wait by default.
func (w *waitFlags) onlyWait(cmd *cobra.Command) {
	flags := cmd.Flags()
	durationVar(flags, &w.timeout, "wait", 0, "wait for the end, or for at most this time")
	flags.Lookup("wait").NoOptDefVal = "0s"
	w.isSet = func() bool { return flags.Changed("wait") }
}

func (w *waitFlags) check(what string) error {
	if w.noWait && w.isSet() {
		return usage("use only one of these flags", "cannot %s: --wait and --no-wait exclude each other", what)
	}
	if w.timeout < 0 {
		return usage("use a positive duration, such as --wait 10m", "cannot %s: --wait %s is negative", what,
			durationfmt.Parseable(w.timeout))
	}
	return nil
}

// checkFor returns an error for a duration that quorumd would refuse.
func checkFor(what, command string, d time.Duration) error {
	if d >= control.MinMaintenance && d <= control.MaxMaintenance {
		return nil
	}
	return usage(command, "cannot %s: --for %s is out of range (%s to %s)", what, durationfmt.Parseable(d),
		durationfmt.Parseable(control.MinMaintenance), durationfmt.Parseable(control.MaxMaintenance))
}

func (a *app) maintenanceOnCommand() *cobra.Command {
	req := control.MaintenanceRequest{Work: policy.WorkMaintenance}
	var w waitFlags
	cmd := a.prints(&cobra.Command{
		Use:   "on --reason TEXT",
		Short: "Stop etcd on this host when it is safe, and keep it down",
		Long: "Request maintenance for this host, and wait until it is safe to work on: leadership is transferred,\n" +
			"etcd is stopped, and quorumd takes no other host down. The maintenance lasts until quorumctl\n" +
			"maintenance off, across reboots and restarts of quorumd. After --for it is overdue, which raises an\n" +
			"alert and changes nothing else.\n" +
			"With --interruptible, quorumd ends the maintenance by itself and starts etcd if another voter fails\n" +
			"and that costs the cluster its quorum or its last fault tolerance. Use it only if etcd may start at\n" +
			"any moment. A second request replaces the reason and the duration; without --interruptible, it makes\n" +
			"the maintenance non-interruptible. Ctrl-C does not cancel the request; quorumctl maintenance off does.",
		Example: examples("quorumctl maintenance on --reason 'new disk in slot 2' --for 1h",
			"quorumctl maintenance on --reason 'install packages' --interruptible",
			"quorumctl maintenance on --reason 'cabling' --keep-running"),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			const what = "begin the maintenance"
			if err := w.check(what); err != nil {
				return err
			}
			err := checkFor(what, "quorumctl maintenance on --reason '<why>' --for 4h", time.Duration(req.For))
			if err != nil {
				return err
			}
			return a.maintenanceOn(cmd.Context(), req, w)
		},
	}, printed{name: "maintenance", of: maintenance{}})
	flags := cmd.Flags()
	reasonFlag(cmd, &req.Reason, inHistory)
	durationVar(flags, (*time.Duration)(&req.For), "for", control.DefaultMaintenance, "how long the work may take, "+
		display.Span(control.MinMaintenance)+" to "+shortDuration(control.MaxMaintenance))
	flags.BoolVar(&req.KeepRunning, "keep-running", false,
		"keep etcd running; only keep quorumd from taking other hosts down")
	flags.BoolVar(&req.Interruptible, "interruptible", false,
		"let quorumd end the maintenance if the cluster needs this host")
	w.flags(cmd)
	return cmd
}

func (a *app) maintenanceOn(ctx context.Context, req control.MaintenanceRequest, w waitFlags) error {
	m, err := a.client().RequestMaintenance(ctx, req)
	if err != nil {
		return cannot("begin the maintenance", err)
	}
	if w.noWait {
		return a.emitRequested(m)
	}
	f := &follower{
		app: a, progress: a.newProgress(a.out), timeout: w.timeout, goal: "until this host is safe to work on",
		effect: "the maintenance continues, or begins when no other host is down",
		hint:   "quorumctl maintenance status shows its progress; quorumctl maintenance off cancels it",
	}
	s, err := f.until(ctx, m.Since, isSafe)
	if err != nil {
		return err
	}
	if end := maintenanceEnd(s, m.Since); end != nil {
		return &failure{
			code: exitFault, hint: "quorumctl maintenance status",
			message: fmt.Sprintf("cannot begin the maintenance: %s: %s", end.Code, end.Text),
		}
	}
	return a.emit(maintenanceOf(s), func(p *page) { writeSafe(p, s) })
}

// emitRequested shows a request that the command does not wait for.
func (a *app) emitRequested(m control.Maintenance) error {
	return a.emit(maintenance{APIVersion: control.APIVersion, Maintenance: &m}, func(p *page) {
		p.line("requested by %s: %s", m.By, m.Reason)
		p.line("→ quorumctl maintenance status")
	})
}

// isSafe reports whether work on the machine may begin.
func isSafe(m control.Maintenance) bool { return m.State == policy.RequestSafe }

func (a *app) maintenanceOffCommand() *cobra.Command {
	var w waitFlags
	cmd := a.prints(&cobra.Command{
		Use:   "off",
		Short: "End the maintenance of this host, or cancel the request",
		Long: "End the maintenance of this host, and wait until its member is back. A request that has not begun is\n" +
			"cancelled. Exits 0 if this host is not in maintenance.",
		Example: examples("quorumctl maintenance off", "quorumctl maintenance off --wait 10m",
			"quorumctl maintenance off --no-wait"),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := w.check("end the maintenance"); err != nil {
				return err
			}
			return a.maintenanceOff(cmd.Context(), w)
		},
	}, printed{name: "maintenance", of: maintenance{}})
	w.flags(cmd)
	return cmd
}

func (a *app) maintenanceOff(ctx context.Context, w waitFlags) error {
	s, err := a.status(ctx, "end the maintenance")
	if err != nil {
		return err
	}
	done, err := a.client().EndMaintenance(ctx)
	if err != nil {
		return cannot("end the maintenance", err)
	}
	if s.Maintenance == nil {
		return a.emit(maintenanceOf(s), func(p *page) { p.line("%s is not in maintenance", s.Host.Name) })
	}
	if w.noWait {
		return a.emit(maintenanceOf(s), func(p *page) {
			p.line("maintenance of %s ended by %s; if it had begun, quorumd brings the host back", s.Host.Name, done.By)
			p.line("→ quorumctl maintenance status")
		})
	}
	return a.bringBack(ctx, s.Maintenance.Since, w.timeout, a.newProgress(a.out))
}

// bringBack waits until the host is back after the end of a maintenance, and shows the outcome.
func (a *app) bringBack(ctx context.Context, since time.Time, timeout time.Duration, progress *progress) error {
	return a.followEnd(ctx, since, &follower{
		app: a, progress: progress, timeout: timeout, goal: "until this host is back",
		effect: "quorumd continues to bring it back", hint: "quorumctl maintenance status",
	})
}

// followEnd waits until the maintenance requested at since has ended, and shows how it ended.
func (a *app) followEnd(ctx context.Context, since time.Time, f *follower) error {
	s, err := f.until(ctx, since, nil)
	if err != nil {
		return err
	}
	if err := maintenanceFailure(s, since); err != nil {
		return err
	}
	return a.emit(maintenanceOf(s), func(p *page) { writeEnd(p, s) })
}

// maintenanceFailure returns an error unless the host is back or the request was cancelled.
func maintenanceFailure(s control.Status, since time.Time) error {
	end := maintenanceEnd(s, since)
	if end.Code == policy.Cycled || end.Code == policy.Cancelled || end.Code == policy.Recalled {
		return nil
	}
	hint := "quorumctl explain"
	if end.Code == "MEMBER_LOST" {
		hint = "quorumctl explain; this host will join again by itself"
	}
	return &failure{
		code: exitFault, hint: hint,
		message: fmt.Sprintf("cannot bring %s back: %s: %s", s.Host.Name, end.Code, end.Text),
	}
}

func (a *app) maintenanceStatusCommand() *cobra.Command {
	return a.prints(&cobra.Command{
		Use:     "status",
		Short:   "Show this host's maintenance and the cluster's operation",
		Example: examples("quorumctl maintenance status", "quorumctl maintenance status -o json"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return showStatus(cmd.Context(), a, "read the maintenance", maintenanceOf, writeMaintenance)
		},
	}, printed{name: "maintenance", of: maintenance{}})
}
