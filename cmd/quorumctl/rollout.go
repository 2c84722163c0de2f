// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
)

func (a *app) rolloutCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "rollout",
		GroupID: groupOperate,
		Short:   "Restart or reboot one host after another, or run a command on it",
		Args:    onlySubcommands,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(
		a.rolloutStartCommand(), a.rolloutStatusCommand(),
		a.rolloutSetCommand("pause", control.RolloutPaused, "Pause the rollout: take no further host down",
			"Take no further host down, until quorumctl rollout resume. A host that is down still comes back."),
		a.rolloutSetCommand("resume", control.RolloutRunning, "Resume a rollout that was paused or has stopped",
			"Resume a rollout that was paused, or that has stopped because a host did not come back well."),
		a.rolloutSetCommand("abort", control.RolloutAborted, "Give the rollout up",
			"Give the rollout up: no further host begins, and it cannot be resumed. One that is down comes back."),
	)
	return cmd
}

func (a *app) rolloutStartCommand() *cobra.Command {
	var req control.RolloutRequest
	var w waiting
	cmd := &cobra.Command{
		Use:   "start restart|reboot|command NAME --reason TEXT",
		Short: "Begin: every host, one after another, the leader last",
		Long: "Have one host after another restart etcd, or reboot: sick ones first, then standbys, followers, and\n" +
			"the leader last. Each waits until the one before is demonstrably back; the first that does not come\n" +
			"back well stops the line. Any host's quorumctl can start, watch and end it.\n\n" +
			"With --wait it shows how it goes until it is over; then the exit code is 0 when every host is back,\n" +
			"70 when it has stopped or was aborted, and 75 when the time is over. It goes on then.\n\n" +
			"A command is a program that lies on every host as /etc/quorumd/hooks/commands.d/NAME. It runs there\n" +
			"as root, once, while etcd is stopped. The first host where it is missing, or fails, stops the line.",
		Args: rolloutWork,
		ValidArgs: []string{
			cobra.CompletionWithDesc(control.WorkRestart, "restart etcd"),
			cobra.CompletionWithDesc(control.WorkReboot, "reboot the machine"),
			cobra.CompletionWithDesc(control.WorkCommand, "run a program of commands.d while etcd is down"),
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := w.check("start the rollout"); err != nil {
				return err
			}
			req.Work = args[0]
			if req.Work == control.WorkCommand {
				req.Command = args[1]
			}
			r, err := a.client().StartRollout(cmd.Context(), req)
			if err != nil {
				return cannot("start the rollout", err)
			}
			if w.set() {
				return a.followRollout(cmd.Context(), r, w.most)
			}
			return a.emitRollout(cmd.Context(), r)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&req.Reason, "reason", "", "why, in one line; it is shown and recorded")
	flags.StringSliceVar(&req.Hosts, "hosts", nil, "only these, by name or ID, as in --hosts n1,n3; all unless given")
	w.onlyWait(cmd)
	flags.StringVar(&req.Version, "until-version", "", "skip hosts that run this etcd, stop at one that then does not")
	flags.BoolVar(&req.WithoutSnapshot, "without-snapshot", false, "do not wait for a snapshot before another etcd")
	if err := cmd.MarkFlagRequired("reason"); err != nil {
		panic(err) // the flag is not there: the program is wrong
	}
	completesBy(cmd, "hosts", a.completeHosts)
	return cmd
}

// rolloutWork refuses what a rollout does not do.
func rolloutWork(_ *cobra.Command, args []string) error {
	const command = "quorumctl rollout start command NAME --reason '<why>'"
	switch {
	case len(args) == 1 && (args[0] == control.WorkRestart || args[0] == control.WorkReboot),
		len(args) == 2 && args[0] == control.WorkCommand:
		return nil
	case len(args) == 1 && args[0] == control.WorkCommand:
		return usage(command, "cannot start the rollout: the name of the command is missing")
	case len(args) > 0 && args[0] == control.WorkCommand:
		return usage(command, "cannot start the rollout: a command takes no arguments, but here are %q",
			strings.Join(args[2:], " "))
	}
	return usage("quorumctl rollout start restart --reason '<why>'",
		"cannot start the rollout: %q is not what it does: restart, reboot or command NAME", strings.Join(args, " "))
}

func (a *app) rolloutStatusCommand() *cobra.Command {
	var watch bool
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show how far the rollout is, and how long it may take",
		Long: "Show the rollout in flight, or the last one. With --watch again and again until it is over; then the\n" +
			"exit code is 0 when every host is back, and 70 when it has stopped or was aborted.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if watch {
				return a.watchRollout(cmd.Context(), interval)
			}
			s, err := a.status(cmd.Context(), "read the rollout")
			if err != nil {
				return err
			}
			return a.emit(rolloutOf(s), func(p *page) { writeRollout(p, s) })
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "show it again and again until it is over")
	durationVar(cmd.Flags(), &interval, "interval", 2*time.Second, "time between two looks with --watch")
	return cmd
}

// watchRollout shows the rollout until it is over.
func (a *app) watchRollout(ctx context.Context, interval time.Duration) error {
	var first *control.Status
	var seen *control.Rollout
	went := false
	err := a.watch(ctx, "quorumctl rollout status", interval, func(s control.Status) ([]byte, bool, error) {
		b, err := a.render(rolloutOf(s), func(p *page) { writeRollout(p, s) })
		if first == nil {
			first = &s
		}
		seen = s.Rollout
		goesOn := seen != nil && (seen.State == control.RolloutRunning || seen.State == control.RolloutPaused)
		went = went || goesOn
		return b, !goesOn && (went || fresh(s, *first)), err
	})
	if err != nil || seen == nil {
		return err
	}
	return rolloutFault(*seen)
}

// fresh tells whether quorumd has looked at the cluster anew since the first look at it: what was
// started a moment ago, on another host perhaps, is not in an older picture.
func fresh(s, first control.Status) bool {
	const rounds = 2 // the first may have been under way
	return s.Loop.Rounds >= first.Loop.Rounds+rounds || s.Loop.Rounds < first.Loop.Rounds
}

// rolloutSetCommand makes a command that changes the state of the rollout.
func (a *app) rolloutSetCommand(name, state, short, long string) *cobra.Command {
	return &cobra.Command{
		Use:   name,
		Short: short,
		Long:  long,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.client().SetRollout(cmd.Context(), state)
			if err != nil {
				return cannot(name+" the rollout", err)
			}
			return a.emitRollout(cmd.Context(), r)
		},
	}
}

// emitRollout shows a rollout that was just changed, as quorumctl rollout status does.
func (a *app) emitRollout(ctx context.Context, r control.Rollout) error {
	s, err := a.status(ctx, "read the rollout")
	if err != nil {
		return err
	}
	s.Rollout = &r // quorumd may not have looked again yet
	return a.emit(rolloutOf(s), func(p *page) {
		writeRollout(p, s)
		if r.State == control.RolloutRunning {
			p.line("→ quorumctl rollout status --watch")
		}
	})
}
