// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/durationfmt"
)

func (a *app) pauseCommand() *cobra.Command {
	var req control.PauseRequest
	cmd := a.prints(&cobra.Command{
		Use:     "pause --reason TEXT",
		GroupID: groupOperate,
		Short:   "Stop all steps on all hosts for a limited time",
		Long: "Stop all steps on all hosts of the cluster until --for has passed or quorumctl resume\n" +
			"ends the pause. etcd keeps running. A second pause replaces the first.",
		Example: examples("quorumctl pause --reason 'network maintenance'",
			"quorumctl pause --reason 'rack move' --for 2h"),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkAtMost("pause", "quorumctl pause --reason '<why>' --for 4h",
				time.Duration(req.For), control.MaxPause); err != nil {
				return err
			}
			pause, err := a.client().Pause(cmd.Context(), req)
			return a.emitResult("pause", err, pause, func(p *page) {
				p.line("%s by %s until %s (%s): %s", word{"paused", warn}, pause.By, display.Timestamp(pause.Until),
					display.Span(pause.Until.Sub(pause.Since)), pause.Reason)
				p.line("→ quorumctl resume ends it earlier")
			})
		},
	}, printed{name: "pause", of: control.Pause{}})
	reasonFlag(cmd, &req.Reason, inHistory)
	durationVar(cmd.Flags(), (*time.Duration)(&req.For), "for", control.DefaultPause,
		"how long, at most "+shortDuration(control.MaxPause))
	return cmd
}

// checkAtMost returns an error for a value of --for that quorumd would refuse. command is an example for the hint.
func checkAtMost(what, command string, d, limit time.Duration) error {
	if d > 0 && d <= limit {
		return nil
	}
	return usage(command, "cannot %s: --for %s is out of range (more than 0, at most %s)", what,
		durationfmt.Parseable(d), durationfmt.Parseable(limit))
}

// shortDuration formats a duration in hours, as --for accepts it.
func shortDuration(d time.Duration) string {
	return display.ThreeDigits(d.Hours()) + "h"
}
