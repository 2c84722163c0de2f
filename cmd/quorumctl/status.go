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
		Short:   "Show the cluster, the hosts and what this host does next",
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
	cmd.Flags().BoolVar(&watch, "watch", false, "show it again and again until interrupted")
	durationVar(cmd.Flags(), &interval, "interval", 2*time.Second, "time between two looks with --watch")
	return cmd
}
