// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

func (a *app) rolloutCommand() *cobra.Command {
	return parent(&cobra.Command{
		Use:     "rollout",
		GroupID: groupOperate,
		Short:   "Restart etcd, reboot or run a command, host by host",
		Example: examples("quorumctl rollout start reboot --reason 'new kernel'", "quorumctl rollout status --watch",
			"quorumctl rollout pause"),
	}, a.rolloutStartCommand(), a.rolloutStatusCommand("rollout"),
		a.rolloutSetCommand("rollout pause", record.RolloutPaused, "Pause the rollout before the next host",
			"Pause the rollout until quorumctl rollout resume. A host that is down still comes back."),
		a.rolloutSetCommand("rollout resume", record.RolloutRunning, "Resume a rollout that is paused or has stopped",
			"Resume a rollout that is paused, or that has stopped because a host did not come back healthy."),
		a.rolloutSetCommand("rollout abort", record.RolloutAborted, "Abort the rollout for good",
			"Abort the rollout for good: no further host goes down. A host that is down comes back."),
	)
}

func (a *app) rolloutStartCommand() *cobra.Command {
	var req control.RolloutRequest
	var w waitFlags
	var c confirmation
	cmd := a.prints(&cobra.Command{
		Use:   "start restart|reboot|command NAME --reason TEXT",
		Short: "Start a rollout over all hosts, the leader last",
		Long: "Restart etcd, reboot the machine or run a command on one host after another: unhealthy hosts first,\n" +
			"then hosts without a voter, then followers, the leader last. The next host begins when the previous\n" +
			"one is back and healthy; a host that does not come back healthy stops the rollout. quorumctl on any\n" +
			"host can start, watch and abort it.\n\n" +
			"With --wait, show the progress until the rollout has ended. The exit status is 0 if every host is\n" +
			"back, 70 if the rollout stopped or was aborted, and 75 if --wait timed out; the rollout then " +
			"continues.\n\n" +
			"A command is the program /etc/quorumd/hooks/commands.d/NAME on every host. It runs once on each host,\n" +
			"as root, while etcd is stopped. A host on which it is missing or fails stops the rollout.",
		Example: examples("quorumctl rollout start restart --reason 'new flags' --wait",
			"quorumctl rollout start reboot --reason 'new kernel' --hosts n1,n2",
			"quorumctl rollout start command upgrade-etcd --until-version 3.6.16 --reason 'etcd 3.6.16'"),
		Args: rolloutWork,
		ValidArgs: []string{
			cobra.CompletionWithDesc(string(policy.WorkRestart), "restart etcd"),
			cobra.CompletionWithDesc(string(policy.WorkReboot), "reboot the machine"),
			cobra.CompletionWithDesc(string(policy.WorkCommand), "run a program of commands.d while etcd is stopped"),
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := w.check("start the rollout"); err != nil {
				return err
			}
			req.Work = policy.Work(args[0])
			if req.Work == policy.WorkCommand {
				req.Command = args[1]
			}
			return a.startRollout(cmd, req, c, w, "start the rollout")
		},
	}, printed{name: "rollout", of: rollout{}})
	flags := cmd.Flags()
	reasonFlag(cmd, &req.Reason, inHistory)
	flags.StringSliceVar(&req.Hosts, "hosts", nil, "only these hosts, by name or ID, such as n1,n3 (default all)")
	w.onlyWait(cmd)
	flags.StringVar(&req.Version, "until-version", "", "skip hosts with this etcd version; stop if a host returns "+
		"without it")
	flags.BoolVar(&req.WithoutSnapshot, "without-snapshot", false,
		"with --until-version: do not require a recent snapshot")
	c.flags(cmd)
	completeWith(cmd, "hosts", a.completeHosts)
	return cmd
}

// startRollout asks the operator to confirm a rollout, starts it, and with --wait follows it. action names the request
// in an error.
func (a *app) startRollout(cmd *cobra.Command, req control.RolloutRequest, c confirmation, w waitFlags,
	action string,
) error {
	ctx := cmd.Context()
	send, err := a.confirm(cmd, c, action, func() (preview, error) { return a.previewRollout(ctx, req) })
	if err != nil || !send {
		return err
	}
	r, err := a.client().StartRollout(ctx, req)
	if err != nil {
		return cannot(action, err)
	}
	if w.isSet() {
		return a.followRollout(ctx, r, w.timeout)
	}
	return a.emitRollout(ctx, r)
}

// previewRollout asks quorumd to check a rollout without starting it, and shows what it would do.
func (a *app) previewRollout(ctx context.Context, req control.RolloutRequest) (preview, error) {
	req.DryRun = true
	r, err := a.client().StartRollout(ctx, req)
	return preview{doc: rollout{APIVersion: control.APIVersion, Rollout: &r}, text: func(p *page) {
		var included, skipped []string
		for _, h := range r.Hosts {
			if h.State == record.HostSkipped {
				skipped = append(skipped, h.Name)
			} else {
				included = append(included, h.Name)
			}
		}
		work := word{display.Work(r.Work, r.Command), bold}
		if len(included) == 0 {
			p.line("would take down no host: %s", work)
		} else {
			p.line("would take down %s, one at a time, the leader last: %s",
				display.Count(len(included), "host", "hosts"), work)
		}
		p.line("    reason   %s", r.Reason)
		if len(included) > 0 {
			p.line("    hosts    %s", strings.Join(included, ", "))
		}
		writeDatabases(p, r.Hosts)
		if len(skipped) > 0 && r.Work != policy.WorkDefrag {
			p.line("    skipped  %s: etcd is already %s", strings.Join(skipped, ", "), r.Version)
		}
		if len(r.Absent) > 0 {
			p.line("    absent   %s: no host record (quorumd does not run, or cannot reach the cluster); left out",
				word{strings.Join(r.Absent, ", "), warn})
		}
		if len(r.Unchecked) > 0 {
			p.line("    settings %s: not checked, because etcd.nextBinary is not set there",
				word{strings.Join(r.Unchecked, ", "), warn})
		}
		if r.Hold {
			p.line("    pauses   before the last member with an older etcd")
		}
		if r.Work == policy.WorkReaddress {
			p.line("    undo     set the old URLs, reload quorumd and run quorumctl readdress HOST... --reason '<why>'")
			p.line("    while a voter's etcd restarts, the fault tolerance is one lower")
		}
		writeSteps(p, r.Steps, r.Warnings)
	}}, err
}

// rolloutWork checks the arguments of rollout start.
func rolloutWork(_ *cobra.Command, args []string) error {
	const command = "quorumctl rollout start command NAME --reason '<why>'"
	var work policy.Work
	if len(args) > 0 {
		work = policy.Work(args[0])
	}
	switch {
	case len(args) == 1 && (work == policy.WorkRestart || work == policy.WorkReboot),
		len(args) == 2 && work == policy.WorkCommand:
		return nil
	case len(args) == 1 && work == policy.WorkCommand:
		return usage(command, "cannot start the rollout: the name of the command is missing")
	case work == policy.WorkCommand:
		return usage(command, "cannot start the rollout: the command takes no arguments, got %q",
			strings.Join(args[2:], " "))
	}
	return usage("quorumctl rollout start restart --reason '<why>'",
		"cannot start the rollout: expected restart, reboot or command NAME, got %q", strings.Join(args, " "))
}

// rolloutStatusCommand returns the subcommand status of a command group, which is rollout or upgrade.
func (a *app) rolloutStatusCommand(group string) *cobra.Command {
	var watch bool
	var interval time.Duration
	cmd := a.prints(&cobra.Command{
		Use:   "status",
		Short: "Show the progress of the rollout and the time left",
		Long: "Show the current or last rollout. With --watch, refresh until it has ended; the exit status is then " +
			"0\nif every host is back, and 70 if the rollout stopped or was aborted.",
		Example: examples("quorumctl "+group+" status", "quorumctl "+group+" status --watch"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if watch {
				return a.watchRollout(cmd.Context(), interval)
			}
			return showStatus(cmd.Context(), a, "read the rollout", rolloutOf, writeRollout)
		},
	}, printed{name: "rollout", of: rollout{}})
	cmd.Flags().BoolVar(&watch, "watch", false, "refresh until the rollout has ended")
	durationVar(cmd.Flags(), &interval, "interval", 2*time.Second, "refresh interval of --watch")
	return cmd
}

// watchRollout shows the rollout repeatedly until it has ended.
func (a *app) watchRollout(ctx context.Context, interval time.Duration) error {
	var first *control.Status
	var seen *control.Rollout
	started := false
	err := a.watch(ctx, "quorumctl rollout status", interval, func(s control.Status) ([]byte, bool, error) {
		b, err := a.render(rolloutOf(s), func(p *page) { writeRollout(p, s) })
		if first == nil {
			first = &s
		}
		seen = s.Rollout
		active := seen != nil && (seen.State == record.RolloutRunning || seen.State == record.RolloutPaused)
		started = started || active
		return b, !active && (started || fresh(s, *first)), err
	})
	if err != nil || seen == nil {
		return err
	}
	return rolloutFailure(*seen)
}

// fresh reports whether quorumd has read the cluster since the first status. An older status may lack a rollout that
// another host has just started.
func fresh(s, first control.Status) bool {
	const rounds = 2 // the round that ends next may have begun before the first status
	return s.Loop.Rounds >= first.Loop.Rounds+rounds || s.Loop.Rounds < first.Loop.Rounds
}

// rolloutSetCommand returns a command that changes the state of the rollout. path is the name of its command group and
// its own name, such as "rollout abort".
func (a *app) rolloutSetCommand(path, state, short, long string) *cobra.Command {
	group, name, _ := strings.Cut(path, " ")
	return a.prints(&cobra.Command{
		Use:     name,
		Short:   short,
		Long:    long,
		Example: examples("quorumctl "+path, "quorumctl "+path+" && quorumctl "+group+" status"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.client().SetRollout(cmd.Context(), state)
			if err != nil {
				return cannot(name+" the rollout", err)
			}
			return a.emitRollout(cmd.Context(), r)
		},
	}, printed{name: "rollout", of: rollout{}})
}

// emitRollout shows a rollout that was just changed.
func (a *app) emitRollout(ctx context.Context, r control.Rollout) error {
	s, err := a.status(ctx, "read the rollout")
	if err != nil {
		return err
	}
	s.Rollout = &r // the status may predate the change
	return a.emit(rolloutOf(s), func(p *page) {
		writeRollout(p, s)
		if r.State == record.RolloutRunning {
			p.line("→ quorumctl rollout status --watch")
		}
	})
}
