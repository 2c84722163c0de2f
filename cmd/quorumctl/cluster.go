// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/policy"
)

func (a *app) clusterCommand() *cobra.Command {
	return parent(&cobra.Command{
		Use:     "cluster",
		GroupID: groupOperate,
		Short:   "Show or change the number of voters",
		Example: examples("quorumctl cluster resize", "quorumctl cluster resize 5 --dry-run"),
	}, a.resizeCommand())
}

func (a *app) resizeCommand() *cobra.Command {
	var req control.ResizeRequest
	var w waitFlags
	var c confirmation
	cmd := a.prints(&cobra.Command{
		Use:   "resize [N]",
		Short: "Show the size of the cluster, or resize it to N voters",
		Long: "Resize the cluster to an odd number of voters from 1 to 9. The size is recorded in etcd and\n" +
			"overrides cluster.voters from then on. Ready hosts join, or surplus voters leave, one at a time:\n" +
			"unhealthy voters first, then voters of the failure domain with the most voters, and in each domain\n" +
			"the leader last. A voter leaves only while all others are live and healthy. To cancel, resize to the\n" +
			"number of voters that the cluster has now. A voter that has left does not come back as the same\n" +
			"member.\n\n" +
			"Without N, show the size, who set it, and the steps that are left.\n\n" +
			"With --wait, show the progress until the cluster has its size and no operation is in flight. The\n" +
			"exit status is 75 if --wait timed out; resizing then continues.",
		Example: examples("quorumctl cluster resize 5 --dry-run",
			"quorumctl cluster resize 5 --reason 'two more racks' --wait",
			"quorumctl cluster resize 1 --reason 'moving away' --without-snapshot"),
		Args: resizeArgs,
		ValidArgs: []string{
			cobra.CompletionWithDesc("1", "fault tolerance 0"), cobra.CompletionWithDesc("3", "fault tolerance 1"),
			cobra.CompletionWithDesc("5", "fault tolerance 2"), cobra.CompletionWithDesc("7", "fault tolerance 3"),
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.showSize(cmd)
			}
			if err := w.check("resize the cluster"); err != nil {
				return err
			}
			req.Voters, _ = strconv.Atoi(args[0]) // resizeArgs has checked the number
			return a.resize(cmd, req, w, c)
		},
	}, printed{name: "resize", of: control.Resize{}})
	flags := cmd.Flags()
	flags.StringVar(&req.Reason, "reason", "", "why, in one line ("+inHistory+")")
	w.onlyWait(cmd)
	flags.BoolVar(&req.WithoutSnapshot, "without-snapshot", false,
		"when resizing to 1 voter, do not require a recent snapshot")
	c.flags(cmd)
	return cmd
}

// resizeArgs checks the argument of resize. quorumd checks whether the cluster may have that size.
func resizeArgs(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if n, err := strconv.Atoi(args[0]); err == nil && n > 0 && len(args) == 1 {
		return nil
	}
	return usage("quorumctl cluster resize 5", "cannot resize the cluster: %q is not a number of voters",
		strings.Join(args, " "))
}

// showSize shows the size of the cluster. It refuses the flags that need a size.
func (a *app) showSize(cmd *cobra.Command) error {
	if name := flagGiven(cmd); name != "" {
		return usage("quorumctl cluster resize 5 --"+name, "cannot resize the cluster: --%s needs a number of voters",
			name)
	}
	size, err := a.client().Size(cmd.Context())
	return a.emitResult("read the size of the cluster", err, size, func(p *page) { writeSize(p, size) })
}

// flagGiven returns the name of a flag on the command line that belongs to this command, or "".
func flagGiven(cmd *cobra.Command) (name string) {
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && name == "" {
			name = f.Name
		}
	})
	return name
}

func (a *app) resize(cmd *cobra.Command, req control.ResizeRequest, w waitFlags, c confirmation) error {
	what := fmt.Sprintf("resize the cluster to %d", req.Voters)
	send, err := a.confirm(cmd, c, what, func() (preview, error) {
		asks := req
		asks.DryRun = true
		plan, err := a.client().Resize(cmd.Context(), asks)
		req.IfRevision = &plan.Revision // the request is valid only for the plan that the operator confirms
		return preview{doc: plan, empty: plan.Unchanged && len(plan.Steps) == 0, text: func(p *page) {
			writeResizePlan(p, plan)
		}}, err
	})
	if err != nil || !send {
		return err
	}
	plan, err := a.client().Resize(cmd.Context(), req)
	if err != nil {
		return cannot(what, err)
	}
	if w.isSet() {
		return a.followResize(cmd.Context(), plan, w.timeout)
	}
	return a.emit(plan, func(p *page) {
		writeResizePlan(p, plan)
		if len(plan.Steps) > 0 {
			p.line("→ quorumctl cluster resize")
		}
	})
}

// followResize shows the progress until the cluster has the requested size and no operation is in flight. It fails if
// another request changes the size meanwhile.
func (a *app) followResize(ctx context.Context, asked control.Resize, timeout time.Duration) error {
	f := &follower{
		app: a, progress: a.newProgress(a.out), timeout: timeout,
		goal:   fmt.Sprintf("until the cluster has %s", display.Count(asked.Target, "voter", "voters")),
		effect: "resizing continues", hint: "quorumctl cluster resize shows the steps that are left",
	}
	var other *control.Size
	_, err := f.follow(ctx, asked.Size.Since, func(s control.Status) observation {
		state, text := resizeProgress(s)
		if got := s.Cluster.Size; got != nil && got.Since.After(asked.Size.Since) && got.Voters != asked.Target {
			other = got
		}
		return observation{
			state: state, text: text, summary: state + display.After(", ", text),
			done: other != nil || hasSize(s, asked), hidden: !showsSize(s, asked),
		}
	})
	switch {
	case err != nil:
		return err
	case other != nil:
		return &failure{
			code: exitFault, hint: "quorumctl cluster resize",
			message: fmt.Sprintf("the cluster has meanwhile been resized to %d by %s", other.Voters, other.By),
		}
	}
	size, err := a.client().Size(ctx)
	return a.emitResult("read the size of the cluster", err, size, func(p *page) { writeSize(p, size) })
}

// showsSize reports whether the status shows the requested size.
func showsSize(s control.Status, asked control.Resize) bool {
	return s.Cluster.Size != nil && s.Cluster.Size.Since.Equal(asked.Size.Since)
}

// hasSize reports whether the cluster has the requested size and no operation is in flight.
func hasSize(s control.Status, asked control.Resize) bool {
	return showsSize(s, asked) && s.Cluster.Reachable && s.Cluster.Voters == asked.Target && s.Op == nil
}

// resizeProgress returns the number of voters, and the operation in flight or what the cluster waits for.
func resizeProgress(s control.Status) (state, text string) {
	return fmt.Sprintf("%d of %d", s.Cluster.Voters, s.Cluster.Target), votersProgress(s)
}

// votersProgress returns the operation in flight, or what the next operation waits for.
func votersProgress(s control.Status) string {
	switch {
	case !s.Cluster.Reachable:
		return "the cluster does not answer"
	case s.Op != nil:
		return fmt.Sprintf("%s of %s, in phase %s", s.Op.Kind, s.Op.HostName, s.Op.Phase)
	}
	for _, r := range s.Reasons {
		if r.Code == string(policy.TooManyVoters) {
			return r.Text
		}
	}
	// reasons that mean that this host has nothing to do
	done := []string{string(policy.Idle), string(policy.TargetMet)}
	if len(s.Reasons) > 0 && !slices.Contains(done, s.Reasons[0].Code) {
		return s.Reasons[0].Code + ": " + s.Reasons[0].Text
	}
	return "waiting for the next host"
}
