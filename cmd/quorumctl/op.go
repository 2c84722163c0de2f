// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
)

func (a *app) opCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "op",
		GroupID: groupOperate,
		Short:   "Show or release the operation in flight",
		Args:    onlySubcommands,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(a.opShowCommand(), a.opReleaseCommand())
	return cmd
}

// operation is the document of op show.
type operation struct {
	APIVersion string       `json:"apiVersion"`
	Op         *control.Op  `json:"op"`
	Lock       control.Lock `json:"lock"`
}

func (a *app) opShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "Show the operation in flight and who holds the lock",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.status(cmd.Context(), "read the operation")
			if err != nil {
				return err
			}
			doc := operation{s.APIVersion, s.Op, s.Lock}
			return a.emit(doc, func(p *page) { writeOperation(p, s) })
		},
	}
}

func writeOperation(p *page, s control.Status) {
	if !s.Cluster.Reachable && s.Cluster.AgeSeconds == nil {
		p.line("not known: etcd has not answered yet")
		return
	}
	if !s.Cluster.Reachable {
		p.line("%s", word{"no quorum answers: this is " + display.Age(s.Cluster.AgeSeconds) + " old", bad})
	}
	if s.Op == nil {
		p.line("no operation is in flight")
	} else {
		writeLines(p, display.Operation(*s.Op, s.Time))
		writeOpDetails(p, *s.Op, s.Time)
	}
	switch {
	case s.Lock.Holder == "":
		p.line("the lock is free")
	case s.Lock.Mine:
		p.line("the lock is held by %s, this host, for %s more", s.Lock.HolderName,
			display.Span(display.Seconds(s.Lock.ValidForSeconds)))
	default:
		p.line("the lock is held by %s", s.Lock.HolderName)
	}
	if s.Op != nil && s.Op.Orphaned {
		p.line("→ if %s will not come back to finish it: quorumctl op release --force --reason '<why>'",
			s.Op.HostName)
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

func (a *app) opReleaseCommand() *cobra.Command {
	var req control.ReleaseRequest
	cmd := &cobra.Command{
		Use:   "release --force --reason TEXT",
		Short: "Forget the operation in flight, so that another can begin",
		Long: "Delete the record of the operation in flight. quorumd keeps to one operation at a time, and cannot\n" +
			"know whether a host that is silent will go on with it: make sure that it is off or repaired first.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !req.Force {
				return usage("make sure that its host is off or repaired, then: quorumctl op release --force "+
					"--reason '<why>'",
					"cannot release the operation: --force is missing")
			}
			done, err := a.client().ReleaseOp(cmd.Context(), req)
			if err != nil {
				return cannot("release the operation", err)
			}
			return a.emit(done, func(p *page) { p.line("released by %s", done.By) })
		},
	}
	cmd.Flags().BoolVar(&req.Force, "force", false, "yes, its host is off or repaired")
	cmd.Flags().StringVar(&req.Reason, "reason", "", "why, in one line; it is recorded")
	if err := cmd.MarkFlagRequired("reason"); err != nil {
		panic(err) // the flag is not there: the program is wrong
	}
	return cmd
}
