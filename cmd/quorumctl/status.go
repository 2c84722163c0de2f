// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
)

func (a *app) statusCommand() *cobra.Command {
	var watch, exitCode bool
	var interval time.Duration
	cmd := a.prints(&cobra.Command{
		Use:     "status",
		GroupID: groupInspect,
		Short:   "Show the cluster, its hosts and this host's next step",
		Long: "Show voters and fault tolerance, the current operation, backups, every host, and what this host\n" +
			"does next or why it does nothing.",
		Example: examples("quorumctl status --watch", "quorumctl status -q --exit-code",
			"quorumctl status -o json | jq .cluster"),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if watch {
				return a.watchStatus(cmd.Context(), interval)
			}
			s, err := a.status(cmd.Context(), "read the status")
			if err != nil {
				return err
			}
			if err := a.emit(s, func(p *page) { writeStatus(p, s) }); err != nil || !exitCode {
				return err
			}
			if g, _ := gradeStatus(s); g != gradeOK {
				return &failure{code: int(g)}
			}
			return nil
		},
	}, printed{name: "status", of: control.Status{}})
	cmd.Flags().BoolVar(&watch, "watch", false, "refresh until interrupted")
	cmd.Flags().BoolVar(&exitCode, "exit-code", false,
		"exit with the status of quorumctl check: 0, 1, 2 or 3")
	cmd.MarkFlagsMutuallyExclusive("watch", "exit-code")
	durationVar(cmd.Flags(), &interval, "interval", 2*time.Second, "refresh interval of --watch")
	return cmd
}
