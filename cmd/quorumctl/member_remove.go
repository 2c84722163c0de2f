// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/agent/policy"
)

func (a *app) memberRemoveCommand() *cobra.Command {
	var req control.RemovalRequest
	var noWait bool
	var c confirmation
	cmd := a.prints(&cobra.Command{
		Use:   "remove NAME --reason TEXT",
		Short: "Remove a member from etcd for good",
		Long: "Remove a member by name or ID, and wait until it is gone. Run this on another host: its quorumd\n" +
			"removes the member under the cluster's lock, when no operation is in progress and the remaining\n" +
			"voters have quorum. A voter that answers is refused without --live; with it, every other voter must\n" +
			"be healthy, and leadership is transferred first. A removal that has not begun within --timeout is\n" +
			"cancelled; interrupting this command does not cancel it. The removed member's host stops etcd and\n" +
			"becomes a spare that can join again. To keep a host out, healthy or not: quorumctl retire.",
		Example: examples("quorumctl member remove n3 --reason 'n3 has been scrapped'",
			"quorumctl member remove 8e9e05c52164694d --reason 'member without a host' --no-wait"),
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			req.Member = args[0]
			if d := time.Duration(req.For); d < control.MinRemoval || d > control.MaxRemoval {
				return usage("quorumctl member remove "+req.Member+" --reason '<why>' --timeout 5m",
					"cannot remove %s: --timeout %s is out of range (%s to %s)", req.Member, durationfmt.Parseable(d),
					durationfmt.Parseable(control.MinRemoval), durationfmt.Parseable(control.MaxRemoval))
			}
			send, err := a.confirm(cmd, c, "remove "+req.Member, func() (preview, error) {
				return a.previewRemoval(cmd.Context(), req)
			})
			if err != nil || !send {
				return err
			}
			return a.memberRemove(cmd.Context(), req, noWait)
		},
		ValidArgsFunction: a.completeMembers,
	}, printed{name: "removal", of: control.Removal{}, with: "--no-wait"},
		printed{name: "removal-end", of: control.RemovalEnd{}})
	flags := cmd.Flags()
	reasonFlag(cmd, &req.Reason, inHistory)
	flags.BoolVar(&req.Live, "live", false, "remove even a voter that answers")
	flags.BoolVar(&req.WithoutSnapshot, "without-snapshot", false, "with --live: do not require a recent snapshot")
	durationVar(flags, (*time.Duration)(&req.For), "timeout", control.DefaultRemoval,
		"how long the request may wait to begin, 1s to 1h")
	flags.BoolVar(&noWait, "no-wait", false, "return at once; follow with quorumctl status")
	c.flags(cmd)
	return cmd
}

// completeMembers completes the names of the members of other hosts.
func (a *app) completeMembers(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	s, err := a.client().Status(cmd.Context())
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, m := range membersOf(s).Members {
		if m.Name != "" && m.Host != s.Host.Name {
			names = append(names, m.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// previewRemoval asks quorumd to check a removal without accepting it, and shows what it would do.
func (a *app) previewRemoval(ctx context.Context, req control.RemovalRequest) (preview, error) {
	req.DryRun = true
	r, err := a.client().RemoveMember(ctx, req)
	return preview{doc: r, empty: r.State == control.RemovalDone, text: func(p *page) {
		if r.State == control.RemovalDone {
			p.line("%s (%s) is already removed", r.Name, r.MemberID)
			return
		}
		p.line("would remove member %s (%s) from etcd for good", word{r.Name, bold}, r.MemberID)
		p.line("    reason   %s", r.Reason)
		if r.Live {
			p.line("    live     yes: even if it is a voter that answers; leadership is transferred first if it leads")
		}
		p.line("    begins   by %s, when no operation is in progress and the other voters have quorum",
			display.Timestamp(r.Until))
	}}, err
}

func (a *app) memberRemove(ctx context.Context, req control.RemovalRequest, noWait bool) error {
	r, err := a.client().RemoveMember(ctx, req)
	switch {
	case err != nil:
		return cannot("remove "+req.Member, err)
	case r.State == control.RemovalDone:
		return a.emit(r, func(p *page) { p.line("%s (%s) is already removed", r.Name, r.MemberID) })
	case noWait:
		return a.emit(r, func(p *page) {
			p.line("removal of %s (%s) requested by %s: %s", r.Name, r.MemberID, r.By, r.Reason)
			p.line("→ quorumctl status")
		})
	}
	end, err := a.followRemoval(ctx, r, time.Duration(req.For))
	if err != nil {
		return err
	}
	if end.Code != policy.Removed {
		f := &failure{
			code: exitFault, hint: "quorumctl status; quorumctl explain " + string(end.Code),
			message: fmt.Sprintf("cannot remove %s: %s: %s", r.Name, end.Code, end.Text),
		}
		if end.Code == policy.Cancelled {
			f.code, f.hint = exitTimeout, "quorumctl status; resolve the cause, then request the removal again"
		}
		return f
	}
	return a.emit(end, func(p *page) { p.line("removed %s (%s)", end.Name, end.MemberID) })
}

// removalGrace is how long to wait beyond the timeout of a request, because a removal that has begun continues.
const removalGrace = time.Minute

// followRemoval shows the progress of a removal until it ends.
func (a *app) followRemoval(ctx context.Context, r control.Removal, timeout time.Duration) (control.RemovalEnd, error) {
	f := &follower{
		app: a, progress: a.newProgress(a.out), timeout: timeout + removalGrace,
		goal:      "until " + r.Name + " is removed",
		effect:    "the removal is cancelled if it has not begun by " + display.Timestamp(r.Until),
		hint:      "quorumctl status",
		lostCause: "quorumd has lost the request",
	}
	s, err := f.follow(ctx, r.Since, func(s control.Status) observation {
		state, text := removalProgress(s)
		ended := s.LastRemoval != nil && s.LastRemoval.Since.Equal(r.Since) && s.LastRemoval.MemberID == r.MemberID
		return observation{state: state, text: text, summary: text, missing: s.Removal == nil, done: ended}
	})
	if err != nil {
		return control.RemovalEnd{}, err
	}
	return *s.LastRemoval, nil
}

// removalProgress returns the state of a removal and what it waits for.
func removalProgress(s control.Status) (state, text string) {
	switch {
	case s.Removal == nil:
		return "unknown", "waiting for quorumd"
	case len(s.Reasons) > 0:
		return s.Removal.State, s.Reasons[0].Code + ": " + s.Reasons[0].Text
	}
	return s.Removal.State, s.Next.Text
}
