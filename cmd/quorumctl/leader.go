// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
)

func (a *app) leaderCommand() *cobra.Command {
	return parent(&cobra.Command{
		Use:     "leader",
		GroupID: groupOperate,
		Short:   "Transfer leadership to another voter",
		Example: examples("quorumctl leader transfer n2", "quorumctl leader transfer --dry-run"),
	}, a.transferCommand())
}

func (a *app) transferCommand() *cobra.Command {
	var req control.TransferRequest
	var w waitFlags
	var c confirmation
	cmd := a.prints(&cobra.Command{
		Use:   "transfer [HOST]",
		Short: "Transfer leadership to HOST, or to the best voter",
		Long: "Transfer leadership to the voter on HOST. Without HOST, quorumd chooses the voter. This host's\n" +
			"quorumd transfers leadership under the cluster's lock when no operation is in progress and the voter\n" +
			"is live, healthy and caught up, and is not about to be taken down or removed. Writes in flight at the\n" +
			"old leader can be lost, and clients have to retry them. A request that cannot be carried out within a\n" +
			"minute expires; a restart of quorumd also ends it. If the voter already leads, nothing is requested\n" +
			"and the exit status is 0.\n\n" +
			"With --wait, wait until the request has ended. The exit status is 75 if --wait timed out.",
		Example: examples(
			"quorumctl leader transfer --dry-run", "quorumctl leader transfer n2 --reason 'n1 is slow' --wait",
		),
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := w.check("transfer leadership"); err != nil {
				return err
			}
			if len(args) > 0 {
				if req.Host = args[0]; req.Host == "" {
					return usage("quorumctl leader transfer n2",
						"cannot transfer leadership: the name of the host is empty")
				}
			}
			return a.transfer(cmd, req, w, c)
		},
		ValidArgsFunction: a.completeHost,
	}, printed{name: "leader-transfer", of: control.Transfer{}},
		printed{name: "leader-transfer-end", of: control.TransferEnd{}, with: "--wait"})
	cmd.Flags().StringVar(&req.Reason, "reason", "", "why, in one line ("+inHistory+")")
	w.onlyWait(cmd)
	c.flags(cmd)
	return cmd
}

// completeHost offers hosts as the only argument.
func (a *app) completeHost(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.hostNames(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
}

func (a *app) transfer(cmd *cobra.Command, req control.TransferRequest, w waitFlags, c confirmation) error {
	what := "transfer leadership"
	if req.Host != "" {
		what += " to " + req.Host
	}
	send, err := a.confirm(cmd, c, what, func() (preview, error) {
		asks := req
		asks.DryRun = true
		t, err := a.client().TransferLeadership(cmd.Context(), asks)
		if req.Host == "" && !t.Unchanged {
			req.Host = t.MemberID.String() // request the member that the operator has confirmed
		}
		return preview{doc: t, empty: t.Unchanged, text: func(p *page) { writeTransfer(p, t) }}, err
	})
	if err != nil || !send {
		return err
	}
	t, err := a.client().TransferLeadership(cmd.Context(), req)
	switch {
	case err != nil:
		return cannot(what, err)
	case w.isSet() && !t.Unchanged:
		return a.followTransfer(cmd.Context(), t, w)
	}
	return a.emit(t, func(p *page) {
		writeTransfer(p, t)
		if !t.Unchanged {
			p.line("→ quorumctl history")
		}
	})
}

// followTransfer waits until the request has ended.
func (a *app) followTransfer(ctx context.Context, t control.Transfer, w waitFlags) error {
	f := &follower{
		app: a, progress: a.newProgress(a.out), timeout: w.timeout, goal: "until " + t.Name + " leads",
		effect: "the request ends by " + display.Timestamp(t.Until), hint: "quorumctl history",
		lostCause: "quorumd has restarted, which ends the request",
	}
	s, err := f.follow(ctx, t.Since, func(s control.Status) observation {
		state, text := "unknown", "waiting for quorumd"
		if k := s.Transfer; k != nil {
			state, text = "waiting", string(k.Code)+": "+k.Text
		}
		end := s.LastTransfer
		ended := end != nil && end.Since.Equal(t.Since) && end.MemberID == t.MemberID
		return observation{state: state, text: text, summary: text, missing: s.Transfer == nil, done: ended}
	})
	if err != nil {
		return err
	}
	end := *s.LastTransfer
	if end.Code != "" {
		return &failure{
			code: exitFault, hint: "quorumctl explain " + string(end.Code),
			message: fmt.Sprintf("cannot transfer leadership to %s: %s: %s", end.Name, end.Code, end.Text),
		}
	}
	return a.emit(end, func(p *page) { p.line("%s leads", word{end.Name, bold}) })
}

// writeTransfer shows what a leadership transfer does, or would do.
func writeTransfer(p *page, t control.Transfer) {
	if t.Unchanged {
		p.line("nothing to do: %s already leads", t.Name)
		return
	}
	verb := "transferring"
	if t.DryRun {
		verb = "would transfer"
	}
	p.line("%s leadership from %s to %s", verb, cmp.Or(t.From, "no leader"), word{t.Name, bold})
	if t.Reason != "" {
		p.line("    reason   %s", t.Reason)
	}
	writeSteps(p, t.Steps, t.Warnings)
}
