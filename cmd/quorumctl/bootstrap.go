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
	cmd := a.prints(&cobra.Command{
		Use:     "bootstrap",
		GroupID: groupOperate,
		Short:   "Start a new cluster on this host, once per cluster",
		Long: "Start a new cluster with one voter on this host. The other hosts join by themselves. Without --yes,\n" +
			"show what would happen and change nothing.",
		Example: examples("quorumctl bootstrap", "quorumctl bootstrap --yes"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.status(cmd.Context(), "bootstrap")
			if err != nil {
				return err
			}
			if !yes {
				return a.previewBootstrap(cmd.Context(), s)
			}
			done, err := a.client().Bootstrap(cmd.Context(), s.Cluster.Name)
			return a.emitResult("bootstrap", err, done, func(p *page) {
				p.line("accepted: %s starts cluster %s, requested by %s", s.Host.Name, s.Cluster.Name, done.By)
				p.line("→ quorumctl wait --for voter --timeout 2m")
			})
		},
	}, printed{name: "status", of: control.Status{}}, printed{name: "done", of: control.Done{}, with: "--yes"})
	cmd.Flags().BoolVar(&yes, "yes", false, "start the cluster")
	return cmd
}

// previewBootstrap shows what bootstrap would do, or why quorumd would refuse it.
func (a *app) previewBootstrap(ctx context.Context, s control.Status) error {
	if s.Cluster.ID != "" {
		return &failure{
			code: exitFault, hint: "quorumctl status",
			message: fmt.Sprintf("cannot bootstrap: the cluster %s already exists, with ID %s",
				s.Cluster.Name, s.Cluster.ID),
		}
	}
	if err := a.client().MayBootstrap(ctx); err != nil {
		return cannot("bootstrap", err)
	}
	return a.emit(s, func(p *page) {
		p.line("would start the new cluster %s with one voter:", word{s.Cluster.Name, bold})
		p.line("    host     %s (%s), mode %s", s.Host.Name, s.Host.ID, s.Host.Mode)
		p.line("    etcd     %s by %s, data in %s", s.Unit.Name, s.Unit.Runner, s.Unit.DataDir)
		p.line("    health   %s%s", display.HealthState(s.Health.State), display.After(": ", s.Health.Text))
		p.line("nothing has changed")
		p.line("→ to start it: quorumctl bootstrap --yes")
	})
}
