// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/policy"
)

func (a *app) operationCommand() *cobra.Command {
	return parent(&cobra.Command{
		Use:     "operation",
		GroupID: groupOperate,
		Short:   "Show or release the current operation",
		Example: examples("quorumctl operation show",
			"quorumctl operation release --force --reason 'n3 returns next week'"),
	}, a.operationShowCommand(), a.operationReleaseCommand())
}

// operation is the document that 'quorumctl operation show' prints.
type operation struct {
	APIVersion string       `json:"apiVersion"`
	Op         *control.Op  `json:"operation"`
	Lock       control.Lock `json:"lock"`
}

func (a *app) operationShowCommand() *cobra.Command {
	return a.prints(&cobra.Command{
		Use:     "show",
		Short:   "Show the current operation and the lock holder",
		Example: examples("quorumctl operation show", "quorumctl operation show -o json"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return showStatus(cmd.Context(), a, "read the operation", func(s control.Status) operation {
				return operation{s.APIVersion, s.Op, s.Lock}
			}, writeOperation)
		},
	}, printed{name: "operation", of: operation{}})
}

func writeOperation(p *page, s control.Status) {
	if !s.Cluster.Reachable && s.Cluster.AgeSeconds == nil {
		p.line("unknown: etcd has not answered yet")
		return
	}
	if !s.Cluster.Reachable {
		p.line("%s", word{"no quorum: this information is " + display.Age(s.Cluster.AgeSeconds) + " old", bad})
	}
	if s.Op == nil {
		p.line("no operation in progress")
	} else {
		writeLines(p, display.Operation(*s.Op, s.Time))
		writeOpDetails(p, *s.Op, s.Time)
	}
	switch {
	case s.Lock.Holder == "":
		p.line("lock: free")
	case s.Lock.Mine:
		p.line("lock: held by %s (this host), valid for %s", s.Lock.HolderName,
			display.Span(display.Seconds(s.Lock.ValidForSeconds)))
	default:
		p.line("lock: held by %s", s.Lock.HolderName)
	}
	if s.Op != nil && s.Op.Orphaned {
		if policy.TakesDown(s.Op.Kind) {
			p.line("→ if %s will not return, power it off, then on another host: quorumctl retire %s --lost "+
				"--reason '<why>'", s.Op.HostName, s.Op.HostName)
		} else {
			p.line("→ if %s will not return: quorumctl operation release --force --reason '<why>'", s.Op.HostName)
		}
	}
}

func writeOpDetails(p *page, op control.Op, now time.Time) {
	p.line("    host      %s (%s)", op.HostName, op.Host)
	if op.MemberID != "" {
		p.line("    member    %s", op.MemberID)
	}
	p.line("    started   %s%s", display.Since(op.Started, now), display.After(" by ", op.By))
	if !op.Deadline.IsZero() {
		p.line("    deadline  %s", display.Timestamp(op.Deadline))
	}
	if op.Reason != "" {
		p.line("    reason    %s", op.Reason)
	}
}

func (a *app) operationReleaseCommand() *cobra.Command {
	var req control.ReleaseRequest
	cmd := a.prints(&cobra.Command{
		Use:   "release --force --reason TEXT",
		Short: "Release the operation of a host that is off or repaired",
		Long: "Delete the record of the current operation, so that the next one can begin. Make sure first that the\n" +
			"host of the operation is powered off or repaired: a host that does not respond may still continue\n" +
			"the operation.",
		Example: examples("quorumctl operation show",
			"quorumctl operation release --force --reason 'n3 returns next week'"),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !req.Force {
				return usage("power off or repair the host of the operation, then: quorumctl operation release "+
					"--force --reason '<why>'",
					"cannot release the operation: --force is missing")
			}
			done, err := a.client().ReleaseOp(cmd.Context(), req)
			return a.emitResult("release the operation", err, done, func(p *page) { p.line("released by %s", done.By) })
		},
	}, printed{name: "done", of: control.Done{}})
	cmd.Flags().BoolVar(&req.Force, "force", false, "confirm that the host is powered off or repaired")
	reasonFlag(cmd, &req.Reason, "recorded in the history")
	return cmd
}
