// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/durationfmt"
)

func (a *app) maintenanceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "maintenance",
		GroupID: groupOperate,
		Short:   "Take this host down safely, and bring it back",
		Args:    onlySubcommands,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(a.maintenanceOnCommand(), a.maintenanceOffCommand(), a.maintenanceStatusCommand())
	return cmd
}

// waiting holds the flags of a command that waits.
type waiting struct {
	most time.Duration
	not  bool
	set  func() bool // whether --wait was given
}

func (w *waiting) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	durationVar(flags, &w.most, "wait", 0, "wait at most so long, as in --wait=10m; else as long as it takes")
	flags.Lookup("wait").NoOptDefVal = "0s"
	flags.BoolVar(&w.not, "no-wait", false, "do not wait: quorumctl maintenance status tells how it goes")
	w.set = func() bool { return flags.Changed("wait") }
}

// onlyWait is for a command that does not wait unless it is told to.
func (w *waiting) onlyWait(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.DurationVar(&w.most, "wait", 0, "wait until it is over, as in --wait=1h at most so long")
	flags.Lookup("wait").NoOptDefVal = "0s"
	w.set = func() bool { return flags.Changed("wait") }
}

func (w *waiting) check(what string) error {
	if w.not && w.set() {
		return usage("leave one of them out", "cannot %s: --wait and --no-wait contradict each other", what)
	}
	if w.most < 0 {
		return usage("a time over 0, as in --wait=10m", "cannot %s: --wait %s is over before it begins", what,
			durationfmt.Typed(w.most))
	}
	return nil
}

// checkFor refuses a duration that quorumd would refuse.
func checkFor(what, command string, d time.Duration) error {
	if d >= control.MinMaintenance && d <= control.MaxMaintenance {
		return nil
	}
	return usage(command, "cannot %s: --for %s is out of bounds, it is %s to %s", what, durationfmt.Typed(d),
		durationfmt.Typed(control.MinMaintenance), durationfmt.Typed(control.MaxMaintenance))
}

// noTime is for the arguments of a command that takes none, where one may be a time for --wait.
func noTime(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		if _, err := config.ParseDuration(args[0]); err == nil {
			return usage(cmd.CommandPath()+" --wait="+args[0], "cannot read the command line: unexpected argument %q",
				args[0])
		}
	}
	return cobra.NoArgs(cmd, args)
}

func (a *app) maintenanceOnCommand() *cobra.Command {
	req := control.MaintenanceRequest{Work: control.WorkMaintenance}
	var w waiting
	cmd := &cobra.Command{
		Use:   "on --reason TEXT",
		Short: "Stop etcd on this host when its turn comes, and keep it down",
		Long: "Ask for this host to be taken down, and wait until it is safe to touch: leadership has been handed\n" +
			"over, etcd is stopped, and no other host goes down meanwhile. That lasts, over restarts of quorumd\n" +
			"and reboots, until quorumctl maintenance off. When the time is over it is overdue, which alerts\n" +
			"and does nothing else. Asked for again, it is the same maintenance, with the new reason and time.\n" +
			"Interrupting this command does not withdraw the wish; quorumctl maintenance off does.",
		Args: noTime,
		RunE: func(cmd *cobra.Command, _ []string) error {
			const what = "begin the maintenance"
			if err := w.check(what); err != nil {
				return err
			}
			if err := checkFor(what, "quorumctl maintenance on --reason '<why>' --for 4h", req.For); err != nil {
				return err
			}
			return a.maintenanceOn(cmd.Context(), req, w)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&req.Reason, "reason", "", "why, in one line; it is shown and recorded")
	durationVar(flags, &req.For, "for", control.DefaultMaintenance, "how long it is meant to last, "+
		display.Span(control.MinMaintenance)+" to "+shortDuration(control.MaxMaintenance))
	flags.BoolVar(&req.KeepRunning, "keep-running", false,
		"only take the turn: etcd runs on, and no other host goes down")
	w.flags(cmd)
	if err := cmd.MarkFlagRequired("reason"); err != nil {
		panic(err) // the flag is not there: the program is wrong
	}
	return cmd
}

func (a *app) maintenanceOn(ctx context.Context, req control.MaintenanceRequest, w waiting) error {
	m, err := a.client().AskMaintenance(ctx, req)
	if err != nil {
		return cannot("begin the maintenance", err)
	}
	if w.not {
		return a.emit(maintenance{APIVersion: control.APIVersion, Maintenance: &m}, func(p *page) {
			p.line("asked for by %s: %s", m.By, m.Reason)
			p.line("→ quorumctl maintenance status")
		})
	}
	f := &follower{
		app: a, progress: a.progressOn(a.out), most: w.most, goal: "until this host is safe to touch",
		stands: "the wish stands, and etcd will be stopped when the turn comes",
		hint:   "quorumctl maintenance status tells how it goes, quorumctl maintenance off withdraws it",
	}
	s, err := f.until(ctx, m.Since, safe)
	if err != nil {
		return err
	}
	if end := ended(s, m.Since); end != nil {
		return &failure{
			code: exitFault, hint: "quorumctl maintenance status",
			message: fmt.Sprintf("cannot begin the maintenance: it has ended: %s: %s", end.Code, end.Text),
		}
	}
	return a.emit(maintenanceOf(s), func(p *page) { writeSafe(p, s) })
}

// safe tells whether the machine may be touched.
func safe(m control.Maintenance) bool { return m.State == control.MaintenanceSafe }

// over is reached by nothing but the end.
func over(control.Maintenance) bool { return false }

func (a *app) maintenanceOffCommand() *cobra.Command {
	var w waiting
	cmd := &cobra.Command{
		Use:   "off",
		Short: "Bring this host back, or withdraw the wish",
		Long: "Say that the work on this host is over, and wait until its member is back. What has not begun yet\n" +
			"is withdrawn. Where nothing was asked for there is nothing to do, and that is no mistake.",
		Args: noTime,
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
			p.line("%s is brought back, as %s asked", s.Host.Name, done.By)
			p.line("→ quorumctl maintenance status")
		})
	}
	return a.bringBack(ctx, s.Maintenance.Since, w.most, a.progressOn(a.out))
}

// bringBack waits until the maintenance that was asked for at since is over, and says how it ended.
func (a *app) bringBack(ctx context.Context, since time.Time, most time.Duration, progress *progress) error {
	f := &follower{
		app: a, progress: progress, most: most, goal: "until this host is back",
		stands: "quorumd goes on bringing it back", hint: "quorumctl maintenance status",
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

// fault is the failure of a maintenance that has ended otherwise than with the host being back or
// the wish withdrawn.
func fault(s control.Status, since time.Time) error {
	end := ended(s, since)
	if end.Code == control.CodeCycled || end.Code == control.CodeWithdrawn {
		return nil
	}
	hint := "quorumctl explain"
	if end.Code == "MEMBER_LOST" {
		hint = "quorumctl explain; this host joins again by itself"
	}
	return &failure{
		code: exitFault, hint: hint,
		message: fmt.Sprintf("cannot bring %s back: %s: %s", s.Host.Name, end.Code, end.Text),
	}
}

func (a *app) maintenanceStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show what is asked of this host, and which host of the cluster is down",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.status(cmd.Context(), "read the maintenance")
			if err != nil {
				return err
			}
			return a.emit(maintenanceOf(s), func(p *page) { writeMaintenance(p, s) })
		},
	}
}
