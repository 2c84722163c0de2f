// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
)

func (a *app) bootstrapCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:     "bootstrap",
		GroupID: groupOperate,
		Short:   "Start a new cluster on this host, once in the cluster's life",
		Long: "Start a new cluster with one voter on this host. The other hosts join it by themselves.\n" +
			"Without --yes it only shows what it would do.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.status(cmd.Context(), "bootstrap")
			if err != nil {
				return err
			}
			if !yes {
				return a.previewBootstrap(cmd.Context(), s)
			}
			done, err := a.client().Bootstrap(cmd.Context(), s.Cluster.Name)
			if err != nil {
				return cannot("bootstrap", err)
			}
			return a.emit(done, func(p *page) {
				p.line("accepted: %s starts the cluster %s, as %s asked", s.Host.Name, s.Cluster.Name, done.By)
				p.line("→ quorumctl wait --for voter --timeout 2m")
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it")
	return cmd
}

// previewBootstrap shows what would happen, as quorumd says it, and fails: nothing was done.
func (a *app) previewBootstrap(ctx context.Context, s control.Status) error {
	if s.Cluster.ID != "" {
		return &failure{
			code: exitFault, hint: "quorumctl status",
			message: fmt.Sprintf("cannot bootstrap: this host knows the cluster %s already, with the ID %s",
				s.Cluster.Name, s.Cluster.ID),
		}
	}
	if err := a.client().MayBootstrap(ctx); err != nil {
		return cannot("bootstrap", err)
	}
	err := a.emit(s, func(p *page) {
		p.line("this would start a new cluster %s with one voter:", word{s.Cluster.Name, bold})
		p.line("    host     %s (%s), mode %s", s.Host.Name, s.Host.ID, s.Host.Mode)
		p.line("    etcd     %s by %s, data in %s", s.Unit.Name, s.Unit.Runner, s.Unit.DataDir)
		p.line("    health   %s%s", display.HealthState(s.Health.State), display.After(": ", s.Health.Text))
	})
	if err != nil {
		return err
	}
	return usage("quorumctl bootstrap --yes", "cannot bootstrap: not confirmed, nothing was done")
}
