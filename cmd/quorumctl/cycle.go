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
	"github.com/quorumd/quorumd/agent/policy"
)

// cycleOptions holds the flags of cycle.
type cycleOptions struct {
	reason   string
	expected time.Duration // after this time the maintenance is overdue
	reboot   bool
	command  string // name of a program in commands.d
	keepDown bool
	waitFlags
	confirmation
}

func (a *app) cycleCommand() *cobra.Command {
	var c cycleOptions
	cmd := a.prints(&cobra.Command{
		Use:     "cycle [flags] [-- COMMAND [ARG...]]",
		GroupID: groupOperate,
		Short:   "Restart etcd, reboot, or run a command with etcd stopped",
		Long: "Take this host down when no other host is down, and wait until it is back. Leadership is transferred\n" +
			"first.\n" +
			"  cycle                 restarts etcd\n" +
			"  cycle --reboot        reboots the machine\n" +
			"  cycle -- COMMAND      stops etcd, runs COMMAND on this terminal with your rights, and starts etcd\n" +
			"  cycle --command NAME  stops etcd, runs /etc/quorumd/hooks/commands.d/NAME as root, and\n" +
			"                        starts etcd, even if this terminal is closed\n" +
			"With a COMMAND, quorumctl exits with its status, Ctrl-C goes to the command, and the host is\n" +
			"brought back even if the command fails, unless --keep-down-on-failure is set.\n\n" +
			"If quorumd does not run etcd itself (etcd.runner: external) and there are no programs in\n" +
			"/etc/quorumd/hooks/etcd.d, COMMAND runs while etcd is up and must restart it itself, as kubeadm does.\n" +
			"On such a host only COMMAND and --reboot are supported.",
		Example: examples("quorumctl cycle --reason 'new flags'", "quorumctl cycle --reboot --reason 'new kernel'",
			"quorumctl cycle --reason 'etcd 3.6.16' -- apt-get install -y etcd-server"),
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
				return a.runInCycle(cmd, args, c)
			}
			return a.cycle(cmd, c)
		},
	}, printed{name: "maintenance", of: maintenance{}})
	flags := cmd.Flags()
	flags.StringVar(&c.reason, "reason", "", "why, in one line (default: COMMAND, or quorumctl cycle)")
	durationVar(flags, &c.expected, "for", control.DefaultMaintenance, "how long it may take, "+
		display.Span(control.MinMaintenance)+" to "+shortDuration(control.MaxMaintenance))
	flags.BoolVar(&c.reboot, "reboot", false, "reboot the machine")
	flags.StringVar(&c.command, "command", "", "run this program of commands.d as root while etcd is stopped")
	flags.BoolVar(&c.keepDown, "keep-down-on-failure", false, "leave the host in maintenance if the command fails")
	c.waitFlags.flags(cmd)
	c.confirmation.flags(cmd)
	return cmd
}

// check returns an error if the flags exclude each other or do not suit the command, or if quorumd would refuse the
// duration.
func (c *cycleOptions) check(command []string, form format) error {
	if err := c.waitFlags.check("cycle"); err != nil {
		return err
	}
	switch {
	case len(command) > 0 && c.reboot:
		return usage("quorumctl cycle --help", "cannot cycle: --reboot excludes a command")
	case c.command != "" && (c.reboot || len(command) > 0):
		return usage("quorumctl cycle --help",
			"cannot cycle: --command excludes --reboot and a command after --")
	case len(command) > 0 && c.noWait:
		return usage("quorumctl cycle --help",
			"cannot cycle: --no-wait excludes a command, which runs on this terminal")
	case len(command) > 0 && (form == formatJSON || form == formatYAML):
		return usage("omit -o", "cannot cycle: -o %s excludes a command, because both write to stdout", form)
	case len(command) > 0 && c.dryRun:
		return usage("quorumctl cycle --help", "cannot cycle: --dry-run excludes a command after --")
	case len(command) == 0 && c.keepDown:
		return usage("quorumctl cycle --help", "cannot cycle: --keep-down-on-failure needs a command")
	}
	return checkFor("cycle", "quorumctl cycle --for 1h", c.expected)
}

// cycle asks quorumd to restart etcd, reboot the machine or run a command.
func (a *app) cycle(cmd *cobra.Command, c cycleOptions) error {
	ctx := cmd.Context()
	req := control.MaintenanceRequest{Work: policy.WorkRestart, Reason: c.reason, For: control.Duration(c.expected)}
	if c.reboot {
		req.Work = policy.WorkReboot
	}
	if c.command != "" {
		req.Work, req.Command = policy.WorkCommand, c.command
	}
	if req.Reason == "" {
		req.Reason = "quorumctl cycle"
	}
	if c.reboot || c.dryRun {
		send, err := a.confirm(cmd, c.confirmation, "cycle", func() (preview, error) {
			return a.previewCycle(ctx, req)
		})
		if err != nil || !send {
			return err
		}
	}
	m, err := a.client().RequestMaintenance(ctx, req)
	if err != nil {
		return cannot("cycle", err)
	}
	if c.noWait {
		return a.emitRequested(m)
	}
	return a.followEnd(ctx, m.Since, &follower{
		app: a, progress: a.newProgress(a.out), timeout: c.timeout, goal: "until this host is back",
		effect: "the " + string(m.Work) + " continues, or begins when no other host is down",
		hint:   "quorumctl maintenance status shows its progress; quorumctl maintenance off cancels it",
	})
}

// previewCycle asks quorumd to check a request without accepting it, and shows what the cycle would do.
func (a *app) previewCycle(ctx context.Context, req control.MaintenanceRequest) (preview, error) {
	req.DryRun = true
	m, err := a.client().RequestMaintenance(ctx, req)
	if err != nil {
		return preview{}, err
	}
	s, err := a.client().Status(ctx)
	return preview{doc: maintenance{APIVersion: control.APIVersion, Maintenance: &m}, text: func(p *page) {
		p.line("would take down %s for a %s when no other host is down", word{s.Host.Name, bold},
			display.Work(m.Work, m.Command))
		p.line("    reason   %s", m.Reason)
	}}, err
}

// runInCycle runs a command while this host is in maintenance. quorumctl writes to stderr, because stdout belongs to
// the command.
func (a *app) runInCycle(cmd *cobra.Command, command []string, c cycleOptions) error {
	if err := checkExecutable(command[0]); err != nil {
		return err
	}
	ctx := cmd.Context()
	a.out = a.err
	signals := make(chan os.Signal, 8) // before the request, so that the command receives every signal
	signal.Notify(signals, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	m, err := a.requestMaintenance(ctx, command, c)
	if err != nil {
		return err
	}
	if err := a.waitUntilSafe(ctx, m, command, c.timeout, signals); err != nil {
		return err
	}
	code, err := a.runCommand(command, cmd.InOrStdin(), cmd.OutOrStdout(), signals)
	// A signal that ended the command must not end quorumctl while it brings the host back. bringBackAfter handles all
	// signals but SIGQUIT.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGQUIT)
	signal.Stop(signals)
	how := fmt.Sprintf("%s exited with status %d", command[0], code)
	if err != nil {
		how = err.Error()
	}
	if code != exitOK && c.keepDown {
		return &failure{
			code: code, message: fmt.Sprintf("the command failed: %s; this host stays in maintenance", how),
			hint: "after fixing the cause: quorumctl maintenance off",
		}
	}
	if err := a.bringBackAfter(ctx, m.Since, c.timeout); err != nil {
		return err
	}
	if code != exitOK {
		return &failure{code: code, message: fmt.Sprintf("the command failed: %s; this host is back", how)}
	}
	return nil
}

// waitUntilSafe waits until the command may run. If the wait ends early, it cancels the request, which would otherwise
// stop etcd for a command that never runs.
func (a *app) waitUntilSafe(ctx context.Context, m control.Maintenance, command []string, timeout time.Duration,
	signals <-chan os.Signal,
) error {
	f := &follower{
		app: a, progress: a.newProgress(a.err), timeout: timeout, goal: "until this host is safe to work on",
		effect: "the command was not run, and the request is cancelled", hint: "quorumctl maintenance status",
	}
	s, err := f.until(ctx, m.Since, isSafe)
	if err == nil && maintenanceEnd(s, m.Since) != nil {
		end := maintenanceEnd(s, m.Since)
		return &failure{
			code: exitFault, hint: "quorumctl maintenance status",
			message: fmt.Sprintf("cannot cycle: the maintenance ended before the command was run: %s: %s", end.Code,
				end.Text),
		}
	}
	if err == nil {
		err = f.progress.show(s.Time, "safe", "running "+strings.Join(command, " "), nil)
	}
	if err == nil {
		err = f.progress.end()
	}
	if err == nil && (ctx.Err() != nil || len(signals) > 0) { // the operator interrupted quorumctl after the last check
		err = f.endedEarly(true, "")
	}
	if err != nil {
		return a.cancelRequest(ctx, err)
	}
	return nil
}

// requestMaintenance requests the maintenance in which the command runs. It returns an error if maintenance was already
// requested: ending that maintenance after the command could start etcd while another operator works.
func (a *app) requestMaintenance(ctx context.Context, command []string, c cycleOptions) (control.Maintenance, error) {
	s, err := a.status(ctx, "cycle")
	if err != nil {
		return control.Maintenance{}, err
	}
	taken := func(m control.Maintenance) error {
		return &failure{
			code: exitFault,
			hint: "quorumctl maintenance status; if the host is safe to work on, run the command without cycle",
			message: fmt.Sprintf("cannot cycle: maintenance of this host was already requested, at %s by %s: %s",
				display.Timestamp(m.Since), m.By, m.Reason),
		}
	}
	if s.Maintenance != nil {
		return control.Maintenance{}, taken(*s.Maintenance)
	}
	req := control.MaintenanceRequest{
		Work: policy.WorkMaintenance, Reason: c.reason, For: control.Duration(c.expected),
	}
	if req.Reason == "" {
		req.Reason = defaultReason(command)
	}
	m, err := a.client().RequestMaintenance(ctx, req)
	if err != nil {
		return m, cannot("cycle", err)
	}
	if m.Since.Before(s.Time) { // an earlier request that the status did not show yet
		return m, taken(m)
	}
	return m, nil
}

// defaultReason derives the reason from the command, as one line of at most control.MaxReason characters.
func defaultReason(command []string) string {
	text := []rune(display.Clean("to run " + strings.Join(command, " ")))
	if len(text) > control.MaxReason {
		text = append(text[:control.MaxReason-1], '…')
	}
	return strings.TrimFunc(string(text), unicode.IsSpace)
}

// cancelRequest cancels the request and returns cause, the error that ended the wait.
func (a *app) cancelRequest(ctx context.Context, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if _, err := a.client().EndMaintenance(ctx); err != nil {
		return cannot("cancel the maintenance", err)
	}
	return cause
}
