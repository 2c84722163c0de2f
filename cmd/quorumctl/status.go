// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/spf13/cobra"
)

func (a *app) statusCommand() *cobra.Command {
	var watch bool
	var interval time.Duration
	cmd := &cobra.Command{
		Use:     "status",
		GroupID: groupInspect,
		Short:   "Show the cluster, its hosts and this host's next step",
		Long: "Show voters and fault tolerance, the current operation, backups, every host, and what this host\n" +
			"does next or why it does nothing.",
		Example: examples("quorumctl status", "quorumctl status --watch", "quorumctl status -o json | jq .cluster"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if watch {
				return a.watchStatus(cmd.Context(), interval)
			}
			s, err := a.status(cmd.Context(), "read the status")
			if err != nil {
				return err
			}
			return a.emit(s, func(p *page) { writeStatus(p, s) })
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "refresh until interrupted")
	durationVar(cmd.Flags(), &interval, "interval", 2*time.Second, "refresh interval of --watch")
	return cmd
}
