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
	cmd := &cobra.Command{
		Use:     "pause --reason TEXT",
		GroupID: groupOperate,
		Short:   "Stop all steps on all hosts for some time",
		Long: "Stop all steps on all hosts of the cluster until --for has passed or quorumctl resume. etcd keeps\n" +
			"running. A second pause replaces the first.",
		Example: examples("quorumctl pause --reason 'network maintenance'",
			"quorumctl pause --reason 'rack move' --for 2h"),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if d := time.Duration(req.For); d <= 0 || d > control.MaxPause {
				return usage("quorumctl pause --reason '<why>' --for 4h",
					"cannot pause: --for %s is out of bounds, it is over 0 and at most %s", durationfmt.Typed(d),
					durationfmt.Typed(control.MaxPause))
			}
			pause, err := a.client().Pause(cmd.Context(), req)
			if err != nil {
				return cannot("pause", err)
			}
			return a.emit(pause, func(p *page) {
				p.line("%s by %s until %s (%s): %s", word{"paused", warn}, pause.By, display.Timestamp(pause.Until),
					display.Span(pause.Until.Sub(pause.Since)), pause.Reason)
				p.line("→ quorumctl resume ends it earlier")
			})
		},
	}
	cmd.Flags().StringVar(&req.Reason, "reason", "", "why, in one line (shown, and recorded in the history)")
	durationVar(cmd.Flags(), (*time.Duration)(&req.For), "for", control.DefaultPause,
		"how long, at most "+shortDuration(control.MaxPause))
	if err := cmd.MarkFlagRequired("reason"); err != nil {
		panic(err) // no such flag: a bug
	}
	return cmd
}

// shortDuration shows hours as --for takes them.
func shortDuration(d time.Duration) string {
	return display.ThreeDigits(d.Hours()) + "h"
}
