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
)

func (a *app) memberRemoveCommand() *cobra.Command {
	var req control.RemovalRequest
	var not bool
	cmd := &cobra.Command{
		Use:   "remove NAME --reason TEXT",
		Short: "Take a member out of etcd for good",
		Long: "Take a member out of etcd for good, named by its name or its ID, and wait until it is gone.\n" +
			"Ask on any other host: its quorumd does it under the cluster's lock, when no host is in an\n" +
			"operation, and only if the voters that are left have a quorum. A voter that answers stays, unless\n" +
			"--live is given: then every other voter must be well, and leadership is moved off first. What has\n" +
			"not begun when the time is over does not begin any more; interrupting this command does not end\n" +
			"that time. The host of a removed member, if it lives, stops its etcd and is a spare, which may\n" +
			"join again as a new member. To keep it out: quorumctl maintenance on, on that host.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			req.Member = args[0]
			if req.For < control.MinRemoval || req.For > control.MaxRemoval {
				return usage("quorumctl member remove "+req.Member+" --reason '<why>' --timeout 5m",
					"cannot remove %s: --timeout %s is out of bounds, it is %s to %s", req.Member,
					durationfmt.Typed(req.For),
					durationfmt.Typed(control.MinRemoval), durationfmt.Typed(control.MaxRemoval))
			}
			return a.memberRemove(cmd.Context(), req, not)
		},
		ValidArgsFunction: a.memberNames,
	}
	flags := cmd.Flags()
	flags.StringVar(&req.Reason, "reason", "", "why, in one line; it is shown and recorded")
	flags.BoolVar(&req.Live, "live", false, "also if it votes and answers")
	flags.BoolVar(&req.WithoutSnapshot, "without-snapshot", false, "with --live: also if no snapshot is of late")
	durationVar(flags, &req.For, "timeout", control.DefaultRemoval, "how long it may wait for its turn, 1s to 1h")
	flags.BoolVar(&not, "no-wait", false, "do not wait: quorumctl status tells how it goes")
	if err := cmd.MarkFlagRequired("reason"); err != nil {
		panic(err) // the flag is not there: the program is wrong
	}
	return cmd
}

// memberNames completes the names of the members of other hosts.
func (a *app) memberNames(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
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

func (a *app) memberRemove(ctx context.Context, req control.RemovalRequest, not bool) error {
	r, err := a.client().RemoveMember(ctx, req)
	switch {
	case err != nil:
		return cannot("remove "+req.Member, err)
	case r.State == control.RemovalDone:
		return a.emit(r, func(p *page) { p.line("%s (%s) was removed already", r.Name, r.MemberID) })
	case not:
		return a.emit(r, func(p *page) {
			p.line("the removal of %s (%s) is asked for by %s: %s", r.Name, r.MemberID, r.By, r.Reason)
			p.line("→ quorumctl status")
		})
	}
	end, err := a.followRemoval(ctx, r, req.For)
	if err != nil {
		return err
	}
	if end.Code != control.CodeRemoved {
		f := &failure{
			code: exitFault, hint: "quorumctl status; quorumctl explain " + end.Code,
			message: fmt.Sprintf("cannot remove %s: %s: %s", r.Name, end.Code, end.Text),
		}
		if end.Code == control.CodeWithdrawn {
			f.code, f.hint = exitTimeout, "quorumctl status; ask again when it can be done"
		}
		return f
	}
	return a.emit(end, func(p *page) { p.line("%s (%s) is removed", end.Name, end.MemberID) })
}

// endsWithin is how long after its time is over a removal is waited for: what has begun by then goes on.
const endsWithin = time.Minute

// followRemoval shows how a removal goes until it has ended. A daemon that does not answer may be restarting.
func (a *app) followRemoval(ctx context.Context, r control.Removal, most time.Duration) (control.RemovalEnd, error) {
	f := &follower{
		app: a, progress: a.progressOn(a.out), most: most + endsWithin, goal: "until " + r.Name + " is removed",
		stands: "it begins by " + display.Timestamp(r.Until) + " or not at all",
		hint:   "quorumctl status tells how it goes",
		lost:   "quorumd no longer knows that it was asked for",
	}
	s, err := f.follow(ctx, r.Since, func(s control.Status) sight {
		state, text := removalStanding(s)
		ended := s.LastRemoval != nil && s.LastRemoval.Since.Equal(r.Since) && s.LastRemoval.MemberID == r.MemberID
		return sight{state: state, text: text, says: text, missing: s.Removal == nil, over: ended}
	})
	if err != nil {
		return control.RemovalEnd{}, err
	}
	return *s.LastRemoval, nil
}

// removalStanding says how far a removal is, and what it waits for.
func removalStanding(s control.Status) (state, text string) {
	switch {
	case s.Removal == nil:
		return "unknown", "quorumd has not looked at it yet"
	case len(s.Reasons) > 0:
		return s.Removal.State, s.Reasons[0].Code + ": " + s.Reasons[0].Text
	}
	return s.Removal.State, s.Next.Text
}
