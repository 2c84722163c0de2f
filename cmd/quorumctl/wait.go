// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/agent/policy"
)

// condition is a state of this host that quorumctl wait waits for.
type condition struct {
	name  string
	holds func(control.Status) bool
}

func conditions() []condition {
	list := []condition{
		{"ready", func(s control.Status) bool { return s.Cluster.Reachable }},
		{"voter", func(s control.Status) bool { return s.Role == policy.RoleVoter }},
		{"member", func(s control.Status) bool {
			return s.Role == policy.RoleVoter || s.Role == policy.RoleStandby || s.Role == policy.RoleLearner
		}},
	}
	for _, state := range []string{"OK", "WARM", "SLOW", "STALLED", "FAILED", "QUALIFYING", "UNKNOWN"} {
		list = append(list, condition{"health=" + state, func(s control.Status) bool {
			return s.Health.State == state
		}})
	}
	return list
}

func conditionNames() []string {
	var names []string
	for _, c := range conditions() {
		names = append(names, c.name)
	}
	return names
}

func (a *app) waitCommand() *cobra.Command {
	var name string
	var timeout time.Duration
	cmd := a.prints(&cobra.Command{
		Use:     "wait",
		GroupID: groupService,
		Short:   "Wait until this host is ready, a voter, a member or healthy",
		Long: "Wait for a condition of this host:\n" +
			"  ready      quorumd answers and reaches the cluster\n" +
			"  voter      this host is a voter\n" +
			"  member     this host is a voter, a standby or a permanent learner\n" +
			"  health=OK  the health state is OK (name any other state the same way)\n" +
			"Exits 75 on timeout.",
		Example: examples("quorumctl wait --for voter", "quorumctl wait --for health=OK --timeout 2m"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all := conditions()
			i := slices.IndexFunc(all, func(c condition) bool { return c.name == name })
			if i < 0 {
				return usage("use one of "+strings.Join(conditionNames(), ", "),
					"cannot wait for %q: unknown condition", name)
			}
			if timeout <= 0 {
				return usage("quorumctl wait --for "+name+" --timeout 5m",
					"cannot wait: --timeout %s is not positive", durationfmt.Text(timeout))
			}
			return a.wait(cmd.Context(), all[i], timeout)
		},
	}, printed{name: "status", of: control.Status{}})
	cmd.Flags().StringVar(&name, "for", "ready", "condition: ready, voter, member or health=OK")
	durationVar(cmd.Flags(), &timeout, "timeout", 5*time.Minute, "how long to wait")
	complete(cmd, "for", conditionNames())
	return cmd
}

// wait waits until the condition holds, and shows the progress on a terminal.
func (a *app) wait(ctx context.Context, c condition, timeout time.Duration) error {
	f := &follower{
		app: a, progress: a.terminalProgress(a.err), timeout: timeout, goal: "for " + c.name, hint: "quorumctl explain",
	}
	s, err := f.follow(ctx, time.Now(), func(s control.Status) observation {
		state, text := hostProgress(s)
		return observation{
			state: state, text: text, progress: firstProgress(s), summary: hostSummary(s), done: c.holds(s),
		}
	})
	if err != nil {
		return err
	}
	return a.emit(s, func(p *page) { p.line("%s: %s", c.name, hostSummary(s)) })
}

// hostProgress returns the role of this host, and what blocks the host or what the host does.
func hostProgress(s control.Status) (state, text string) {
	switch {
	case len(s.Reasons) > 0:
		return string(s.Role), s.Reasons[0].Code + ": " + s.Reasons[0].Text
	case s.Op != nil && s.Op.Host == s.Host.ID:
		return string(s.Role), s.Op.Kind + ": " + s.Op.Phase
	}
	return string(s.Role), cmp.Or(s.Next.Text, "health "+s.Health.State)
}

// isTransient reports whether quorumd or etcd was unavailable, so that another attempt may succeed.
func isTransient(err error) bool {
	e, ok := errors.AsType[*control.Error](err)
	return ok && exitCode(e) == exitUnavailable
}

// hostSummary describes the state of this host on one line.
func hostSummary(s control.Status) string {
	text := fmt.Sprintf("%s is %s, health %s", s.Host.Name, s.Role, s.Health.State)
	if !s.Cluster.Reachable {
		text += ", no quorum"
	}
	if len(s.Reasons) > 0 {
		text += "; " + s.Reasons[0].Code + ": " + s.Reasons[0].Text
	}
	return text
}
