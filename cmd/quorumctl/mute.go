// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/health"
)

func (a *app) muteCommand() *cobra.Command {
	var req control.MuteRequest
	cmd := a.prints(&cobra.Command{
		Use:   "mute CODE --reason TEXT",
		Short: "Mute a finding on this host for a limited time",
		Long: "Mute a finding on this host until --for has passed or the finding gets worse. Until then it raises\n" +
			"no alert and quorumctl check ignores it; status and health still show it. A mute never unblocks a\n" +
			"step. Muting again replaces the reason and the duration.",
		Example: examples("quorumctl health mute DISK_FSYNC_SLOW --reason 'new disk on Monday' --for 3d",
			"quorumctl health mute CLOCK_UNSYNCHRONISED --reason 'NTP outage'"),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(findingNames(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkAtMost("mute", "quorumctl health mute "+args[0]+" --reason '<why>' --for 4h",
				time.Duration(req.For), control.MaxMute); err != nil {
				return err
			}
			all, err := a.client().Checks(cmd.Context())
			if err != nil {
				return cannot("mute "+args[0], err)
			}
			of, err := findingOf(all, "mute", args[0])
			if err != nil {
				return err
			}
			if req.Code = args[0]; of.Code != nil {
				req.Code = string(of.Code.Code)
			}
			m, err := a.client().Mute(cmd.Context(), req)
			return a.emitResult("mute "+args[0], err, m, func(p *page) {
				p.line("%s", display.Mute(m, m.Since))
				p.line("→ quorumctl health unmute %s ends it earlier", m.Code)
			})
		},
	}, printed{name: "mute", of: health.Mute{}})
	reasonFlag(cmd, &req.Reason, inHistory)
	durationVar(cmd.Flags(), (*time.Duration)(&req.For), "for", control.DefaultMute,
		"how long, at most "+shortDuration(control.MaxMute))
	return cmd
}

func (a *app) unmuteCommand() *cobra.Command {
	return a.prints(&cobra.Command{
		Use:   "unmute CODE",
		Short: "Unmute a finding on this host",
		Example: examples("quorumctl health unmute DISK_FSYNC_SLOW",
			"quorumctl health unmute CLOCK_UNSYNCHRONISED"),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(findingNames(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			code := strings.ToUpper(args[0])
			done, err := a.client().Unmute(cmd.Context(), code)
			return a.emitResult("unmute "+code, err, done, func(p *page) { p.line("%s: unmuted by %s", code, done.By) })
		},
	}, printed{name: "done", of: control.Done{}})
}

func writeMutes(p *page, s control.Status, indent string) {
	for _, m := range s.Health.Mutes {
		p.line(indent+"%s", display.Mute(m, s.Time))
	}
}
