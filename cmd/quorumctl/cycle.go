// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
)

// cycling holds the flags of cycle.
type cycling struct {
	reason   string
	meant    time.Duration // how long it is meant to take
	reboot   bool
	command  string // the name of a program of commands.d
	keepDown bool
	waiting
}

func (a *app) cycleCommand() *cobra.Command {
	var c cycling
	cmd := &cobra.Command{
		Use:     "cycle [flags] [-- COMMAND [ARG...]]",
		GroupID: groupOperate,
		Short:   "Restart etcd, reboot, or run a command while etcd is down, when the turn comes",
		Long: "Take this host down when its turn comes, and wait until it is back: with leadership handed over\n" +
			"first, and no other host down meanwhile. It restarts etcd, with --reboot the machine, and with a\n" +
			"COMMAND it stops etcd, runs the command here, with your rights and on this terminal, and starts etcd\n" +
			"again. The command's exit code is kept. A command that fails does not keep the host down, unless\n" +
			"--keep-down-on-failure is given; Ctrl-C goes to the command, and the host is brought back after it.\n" +
			"With --command NAME quorumd runs the program of that name in /etc/quorumd/hooks/commands.d instead,\n" +
			"as root, whatever becomes of this terminal.\n\n" +
			"Where others run etcd (etcd.runner: external) and no programs lie in /etc/quorumd/hooks/etcd.d, a\n" +
			"COMMAND runs while etcd still does, and has to stop and start it, as kubeadm does; the host is back\n" +
			"when etcd takes part again. Without a COMMAND only --reboot is for such a host.",
		Args: func(cmd *cobra.Command, args []string) error {
			if n := cmd.ArgsLenAtDash(); len(args) > 0 && n != 0 {
				return usage("quorumctl cycle -- "+strings.Join(args, " "),
					"cannot read the command line: a command comes after --")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.check(args, a.format); err != nil {
				return err
			}
			if len(args) > 0 {
				return a.cycleAround(cmd, args, c)
			}
			return a.cycle(cmd.Context(), c)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&c.reason, "reason", "", "why, in one line; what is done unless given")
	durationVar(flags, &c.meant, "for", control.DefaultMaintenance, "how long it is meant to take, "+
		display.Span(control.MinMaintenance)+" to "+shortDuration(control.MaxMaintenance))
	flags.BoolVar(&c.reboot, "reboot", false, "reboot the machine")
	flags.StringVar(&c.command, "command", "", "have quorumd run this program of commands.d while etcd is down")
	flags.BoolVar(&c.keepDown, "keep-down-on-failure", false, "leave the host in maintenance when the command fails")
	c.flags(cmd)
	return cmd
}

// check refuses flags that do not go together.
func (c *cycling) check(command []string, form format) error {
	if err := c.waiting.check("cycle"); err != nil {
		return err
	}
	switch {
	case len(command) > 0 && c.reboot:
		return usage("quorumctl cycle --help", "cannot cycle: --reboot does not go with a command")
	case c.command != "" && (c.reboot || len(command) > 0):
		return usage("quorumctl cycle --help",
			"cannot cycle: --command does not go with --reboot, nor with a command of yours")
	case len(command) > 0 && c.not:
		return usage("quorumctl cycle --help",
			"cannot cycle: --no-wait does not go with a command, which runs in this terminal")
	case len(command) > 0 && (form == formatJSON || form == formatYAML):
		return usage("leave -o out", "cannot cycle: -o %s does not go with a command, which writes to the same place",
			form)
	case len(command) == 0 && c.keepDown:
		return usage("quorumctl cycle --help", "cannot cycle: --keep-down-on-failure needs a command")
	}
	return checkFor("cycle", "quorumctl cycle --for 1h", c.meant)
}

// cycle restarts etcd, reboots the machine, or has quorumd run a command.
func (a *app) cycle(ctx context.Context, c cycling) error {
	req := control.MaintenanceRequest{Work: control.WorkRestart, Reason: c.reason, For: c.meant}
	if c.reboot {
		req.Work = control.WorkReboot
	}
	if c.command != "" {
		req.Work, req.Command = control.WorkCommand, c.command
	}
	if req.Reason == "" {
		req.Reason = "quorumctl cycle"
	}
	m, err := a.client().AskMaintenance(ctx, req)
	if err != nil {
		return cannot("cycle", err)
	}
	if c.not {
		return a.emit(maintenance{APIVersion: control.APIVersion, Maintenance: &m}, func(p *page) {
			p.line("asked for by %s: %s", m.By, m.Reason)
			p.line("→ quorumctl maintenance status")
		})
	}
	f := &follower{
		app: a, progress: a.progressOn(a.out), most: c.most, goal: "until this host is back",
		stands: "the wish stands, and the " + m.Work + " goes on, or follows when the turn comes",
		hint:   "quorumctl maintenance status tells how it goes, quorumctl maintenance off withdraws it",
	}
	s, err := f.until(ctx, m.Since, over)
	if err != nil {
		return err
	}
	if err := fault(s, m.Since); err != nil {
		return err
	}
	return a.emit(maintenanceOf(s), func(p *page) { writeEnd(p, s) })
}

// cycleAround runs a command while etcd is down. What quorumctl itself has to say goes to stderr:
// stdout is the command's.
func (a *app) cycleAround(cmd *cobra.Command, command []string, c cycling) error {
	if err := runnable(command[0]); err != nil {
		return err
	}
	ctx := cmd.Context()
	a.out = a.err
	signals := make(chan os.Signal, 8) // from before the wish on, so that none is lost to the command
	signal.Notify(signals, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	m, err := a.askToRun(ctx, command, c)
	if err != nil {
		return err
	}
	if err := a.readyToRun(ctx, m, command, c.most, signals); err != nil {
		return err
	}
	code, err := a.runCommand(command, cmd.InOrStdin(), cmd.OutOrStdout(), signals)
	// This waits for those on their way: one that ended the command does not end the way back too. That one handles all
	// but SIGQUIT, which would end quorumctl.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGQUIT)
	signal.Stop(signals)
	how := fmt.Sprintf("%s ended with %d", command[0], code)
	if err != nil {
		how = err.Error()
	}
	if code != exitOK && c.keepDown {
		return &failure{
			code: code, message: fmt.Sprintf("cannot cycle: %s; this host stays in maintenance", how),
			hint: "when it is mended: quorumctl maintenance off",
		}
	}
	if err := a.bringBackAfter(ctx, m.Since, c.most); err != nil {
		return err
	}
	if code != exitOK {
		return &failure{code: code, message: fmt.Sprintf("cannot cycle: %s; the host was brought back all the same",
			how)}
	}
	return nil
}

// readyToRun waits until the command may be run. When that ends early, the wish is withdrawn: nobody
// would be there when its turn comes.
func (a *app) readyToRun(ctx context.Context, m control.Maintenance, command []string, most time.Duration,
	signals <-chan os.Signal,
) error {
	f := &follower{
		app: a, progress: a.progressOn(a.err), most: most, goal: "until this host is safe to touch",
		stands: "nothing was run, and the wish is withdrawn", hint: "quorumctl maintenance status",
	}
	s, err := f.until(ctx, m.Since, safe)
	if err == nil && ended(s, m.Since) != nil {
		end := ended(s, m.Since)
		return &failure{
			code: exitFault, hint: "quorumctl maintenance status",
			message: fmt.Sprintf("cannot cycle: the maintenance has ended before the command was run: %s: %s", end.Code,
				end.Text),
		}
	}
	if err == nil {
		err = f.progress.show(s.Time, "safe", "running "+strings.Join(command, " "), nil)
	}
	if err == nil {
		err = f.progress.end()
	}
	if err == nil && (ctx.Err() != nil || len(signals) > 0) { // in this very moment
		err = f.early(true, "")
	}
	if err != nil {
		return a.withdraw(ctx, err)
	}
	return nil
}

// askToRun asks for the maintenance in which a command is run. It must be this one's own: somebody
// else's would be ended under their hands.
func (a *app) askToRun(ctx context.Context, command []string, c cycling) (control.Maintenance, error) {
	s, err := a.status(ctx, "cycle")
	if err != nil {
		return control.Maintenance{}, err
	}
	taken := func(m control.Maintenance) error {
		return &failure{
			code: exitFault,
			hint: "quorumctl maintenance status; where it says that the machine is safe to touch, the command needs " +
				"no cycle",
			message: fmt.Sprintf("cannot cycle: this host is in maintenance already, since %s by %s: %s",
				display.Timestamp(m.Since), m.By, m.Reason),
		}
	}
	if s.Maintenance != nil {
		return control.Maintenance{}, taken(*s.Maintenance)
	}
	req := control.MaintenanceRequest{Work: control.WorkMaintenance, Reason: c.reason, For: c.meant}
	if req.Reason == "" {
		req.Reason = reasonOf(command)
	}
	m, err := a.client().AskMaintenance(ctx, req)
	if err != nil {
		return m, cannot("cycle", err)
	}
	if m.Since.Before(s.Time) { // somebody else was quicker by a moment
		return m, taken(m)
	}
	return m, nil
}

// reasonOf makes a command a reason: one line, and not too long.
func reasonOf(command []string) string {
	text := []rune(display.Clean("to run " + strings.Join(command, " ")))
	if len(text) > control.MaxReason {
		text = append(text[:control.MaxReason-1], '…')
	}
	return strings.TrimFunc(string(text), unicode.IsSpace)
}

// withdraw takes the wish back when the waiting for it has ended early.
func (a *app) withdraw(ctx context.Context, early error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if _, err := a.client().EndMaintenance(ctx); err != nil {
		return cannot("withdraw the maintenance", err)
	}
	return early
}
