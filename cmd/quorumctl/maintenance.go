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
)

func (a *app) maintenanceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "maintenance",
		GroupID: groupOperate,
		Short:   "Take this host down for work, and bring it back",
		Example: examples("quorumctl maintenance on --reason 'new disk' --for 1h",
			"quorumctl maintenance status", "quorumctl maintenance off"),
		Args: onlySubcommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(a.maintenanceOnCommand(), a.maintenanceOffCommand(), a.maintenanceStatusCommand())
	return cmd
}

// waiting holds the flags of a command that waits.
type waiting struct {
	most time.Duration
	not  bool
	set  func() bool // reports whether --wait was given
}

func (w *waiting) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	durationVar(flags, &w.most, "wait", 0, "give up waiting after this time, as in --wait 10m (default: never)")
	flags.Lookup("wait").NoOptDefVal = "0s"
	flags.BoolVar(&w.not, "no-wait", false, "return at once; follow with quorumctl maintenance status")
	w.set = func() bool { return flags.Changed("wait") }
}

// onlyWait declares --wait for a command that does not wait by default.
func (w *waiting) onlyWait(cmd *cobra.Command) {
	flags := cmd.Flags()
	durationVar(flags, &w.most, "wait", 0, "wait until it has ended, as in --wait or --wait 1h")
	flags.Lookup("wait").NoOptDefVal = "0s"
	w.set = func() bool { return flags.Changed("wait") }
}

func (w *waiting) check(what string) error {
	if w.not && w.set() {
		return usage("use one of them", "cannot %s: --wait and --no-wait exclude each other", what)
	}
	if w.most < 0 {
		return usage("use a positive duration, as in --wait 10m", "cannot %s: --wait %s is negative", what,
			durationfmt.Typed(w.most))
	}
	return nil
}

// checkFor returns an error for a duration that quorumd would refuse.
func checkFor(what, command string, d time.Duration) error {
	if d >= control.MinMaintenance && d <= control.MaxMaintenance {
		return nil
	}
	return usage(command, "cannot %s: --for %s is out of range (%s to %s)", what, durationfmt.Typed(d),
		durationfmt.Typed(control.MinMaintenance), durationfmt.Typed(control.MaxMaintenance))
}

func (a *app) maintenanceOnCommand() *cobra.Command {
	req := control.MaintenanceRequest{Work: control.WorkMaintenance}
	var w waiting
	cmd := &cobra.Command{
		Use:   "on --reason TEXT",
		Short: "Stop etcd on this host when it is safe, and keep it down",
		Long: "Request maintenance for this host, and wait until it is safe to work on: leadership is transferred,\n" +
			"etcd is stopped, and no other host goes down. It lasts until quorumctl maintenance off, across reboots\n" +
			"and restarts of quorumd. After --for it is overdue, which raises an alert and changes nothing else.\n" +
			"A second request replaces reason and time. Interrupting this command does not cancel the request;\n" +
			"quorumctl maintenance off does.",
		Example: examples("quorumctl maintenance on --reason 'new disk in slot 2' --for 1h",
			"quorumctl maintenance on --reason 'firmware' --wait 10m",
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
	}
	flags := cmd.Flags()
	flags.StringVar(&req.Reason, "reason", "", "why, in one line (shown, and recorded in the history)")
	durationVar(flags, (*time.Duration)(&req.For), "for", control.DefaultMaintenance, "how long the work may take, "+
		display.Span(control.MinMaintenance)+" to "+shortDuration(control.MaxMaintenance))
	flags.BoolVar(&req.KeepRunning, "keep-running", false,
		"keep etcd running; only keep other hosts from going down")
	w.flags(cmd)
	if err := cmd.MarkFlagRequired("reason"); err != nil {
		panic(err) // no such flag: a bug
	}
	return cmd
}

func (a *app) maintenanceOn(ctx context.Context, req control.MaintenanceRequest, w waiting) error {
	m, err := a.client().RequestMaintenance(ctx, req)
	if err != nil {
		return cannot("begin the maintenance", err)
	}
	if w.not {
		return a.emit(maintenance{APIVersion: control.APIVersion, Maintenance: &m}, func(p *page) {
			p.line("requested by %s: %s", m.By, m.Reason)
			p.line("→ quorumctl maintenance status")
		})
	}
	f := &follower{
		app: a, progress: a.progressOn(a.out), most: w.most, goal: "until this host is safe to work on",
		stands: "the request stays queued, and etcd will be stopped when it is this host's turn",
		hint:   "quorumctl maintenance status shows its progress, quorumctl maintenance off cancels it",
	}
	s, err := f.until(ctx, m.Since, safe)
	if err != nil {
		return err
	}
	if end := ended(s, m.Since); end != nil {
		return &failure{
			code: exitFault, hint: "quorumctl maintenance status",
			message: fmt.Sprintf("cannot begin the maintenance: it ended: %s: %s", end.Code, end.Text),
		}
	}
	return a.emit(maintenanceOf(s), func(p *page) { writeSafe(p, s) })
}

// safe reports whether work on the machine may begin.
func safe(m control.Maintenance) bool { return m.State == control.MaintenanceSafe }

// over waits for the end of the maintenance.
func over(control.Maintenance) bool { return false }

func (a *app) maintenanceOffCommand() *cobra.Command {
	var w waiting
	cmd := &cobra.Command{
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
	}
	w.flags(cmd)
	return cmd
}

func (a *app) maintenanceOff(ctx context.Context, w waiting) error {
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
	if w.not {
		return a.emit(maintenanceOf(s), func(p *page) {
			p.line("maintenance of %s ended by %s: quorumd brings it back", s.Host.Name, done.By)
			p.line("→ quorumctl maintenance status")
		})
	}
	return a.bringBack(ctx, s.Maintenance.Since, w.most, a.progressOn(a.out))
}

// bringBack waits for the end of the maintenance that was requested at since, and shows how it ended.
func (a *app) bringBack(ctx context.Context, since time.Time, most time.Duration, progress *progress) error {
	f := &follower{
		app: a, progress: progress, most: most, goal: "until this host is back",
		stands: "quorumd continues to bring it back", hint: "quorumctl maintenance status",
	}
	s, err := f.until(ctx, since, over)
	if err != nil {
		return err
	}
	if err := fault(s, since); err != nil {
		return err
	}
	return a.emit(maintenanceOf(s), func(p *page) { writeEnd(p, s) })
}

// fault returns an error unless the maintenance ended with the host back or the request cancelled.
func fault(s control.Status, since time.Time) error {
	end := ended(s, since)
	if end.Code == control.CodeCycled || end.Code == control.CodeCancelled {
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
	return &cobra.Command{
		Use:     "status",
		Short:   "Show this host's maintenance and the cluster's operation",
		Example: examples("quorumctl maintenance status", "quorumctl maintenance status -o json"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.status(cmd.Context(), "read the maintenance")
			if err != nil {
				return err
			}
			return a.emit(maintenanceOf(s), func(p *page) { writeMaintenance(p, s) })
		},
	}
}
