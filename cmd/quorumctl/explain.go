// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/policy"
)

// explanation is the document that 'quorumctl explain' prints.
type explanation struct {
	APIVersion string           `json:"apiVersion"`
	Host       control.Host     `json:"host"`
	Role       policy.Role      `json:"role"`
	Next       control.Next     `json:"next"`
	Reasons    []control.Reason `json:"reasons"`
	Health     control.Health   `json:"health"`
	// the failure domain whose loss costs the quorum, as a sentence; absent if there is none
	DomainLoss string `json:"domainLoss,omitempty"`
}

func (a *app) explainCommand() *cobra.Command {
	return a.prints(&cobra.Command{
		Use:     "explain [CODE|HOST]",
		GroupID: groupInspect,
		Short:   "Explain what a host does or waits for, or what a code means",
		Long: "Without an argument, show what this host does next, or every reason why it does nothing, and the\n" +
			"failure domain whose loss costs the quorum, if there is one. With a code (LOWER_RANKED), show its\n" +
			"meaning and remedy; this does not contact quorumd. With the name or ID of a host, show what that host\n" +
			"last published: its role, health state, position in the join queue, and what blocks it.",
		Example:           examples("quorumctl explain", "quorumctl explain NO_QUORUM", "quorumctl explain n2"),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeCodeOrHost,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.explainNamed(cmd, args[0])
			}
			return showStatus(cmd.Context(), a, "explain", func(s control.Status) explanation {
				return explanation{s.APIVersion, s.Host, s.Role, s.Next, s.Reasons, s.Health, s.Cluster.DomainLoss}
			}, writeExplanation)
		},
	}, printed{name: "explanation", of: explanation{}},
		printed{name: "code", of: code{}, with: "CODE"},
		printed{name: "host", of: control.HostRecord{}, with: "HOST"})
}

// explainNamed explains a code, or a host by its host record. It contacts the agent unless the name is a code.
func (a *app) explainNamed(cmd *cobra.Command, name string) error {
	if c, known := codeOf(name); known {
		return a.emit(c, func(p *page) { writeCode(p, c) })
	}
	s, err := a.status(cmd.Context(), "explain")
	i := slices.IndexFunc(s.Hosts, func(h control.HostRecord) bool { return h.Name == name || h.ID == name })
	if err != nil || i < 0 {
		return usage("quorumctl codes lists all codes; quorumctl status lists all hosts",
			"cannot explain %q: it is not a code, and quorumd reports no such host", name)
	}
	return a.emit(s.Hosts[i], func(p *page) { writeHost(p, s, s.Hosts[i]) })
}

// writeHost shows the record of a host as this host last read it.
func writeHost(p *page, s control.Status, h control.HostRecord) {
	p.line("%s (%s): %s, %s", h.Name, h.ID, h.Role, display.HealthState(h.Health))
	if h.Former {
		p.line("%s; no newer record of this host exists", h.HealthText)
		return
	}
	switch {
	case h.Rank == 1:
		p.line("join queue: position 1")
	case h.Rank > 1:
		p.line("join queue: position %d", h.Rank)
	case h.Role != policy.RoleVoter:
		p.line("join queue: not ready to join")
	}
	if c, known := codeOf(h.Waiting); known {
		p.line("waits for:")
		writeCode(p, c)
	}
	switch {
	case h.SilentSeconds != nil && h.MemberID == "":
		p.line("last seen at most %s ago: it does not renew its record, which has not expired yet",
			display.Age(h.SilentSeconds))
	case h.SilentSeconds != nil:
		p.line("last seen at most %s ago: its member does not answer; its record has not expired yet",
			display.Age(h.SilentSeconds))
	case h.AgeSeconds != nil:
		p.line("reported by %s, read by %s %s ago", h.Name, s.Host.Name, display.Age(h.AgeSeconds))
	}
}

func writeExplanation(p *page, s control.Status) {
	writeSummary(p, s)
	for _, r := range s.Reasons {
		p.line("[%s] %s", word{r.Code, warn}, r.Text)
		if !r.Since.IsZero() {
			p.line("    since %s", display.Since(r.Since, s.Time))
		}
		writeRemedy(p, r.Remedy)
	}
	writeMeasured(p, s.Health)
	if s.Cluster.DomainLoss != "" {
		p.line("%s", word{s.Cluster.DomainLoss, warn})
	}
	writeLines(p, display.CurrentWork(s)...)
	writeLines(p, display.Backup(s)...)
	writeLines(p, display.Loop(s.Loop)...)
	p.line("next: %s", display.Next(s))
	switch {
	case s.Health.State != "OK":
		p.line("→ quorumctl health")
	case len(s.Reasons) > 0:
		p.line("→ quorumctl status")
	}
}

// writeSummary shows on one line whether the host acts, and the reason if it does not.
func writeSummary(p *page, s control.Status) {
	who := fmt.Sprintf("%s (%s, mode %s)", s.Host.Name, display.LastRole(s), s.Host.Mode)
	because := ""
	if n := len(s.Reasons); n > 0 {
		because = " because of " + s.Reasons[0].Code
		if n > 1 {
			because += fmt.Sprintf(" and %d more", n-1)
		}
	}
	switch {
	case s.Loop.AgeSeconds == nil:
		p.line("%s %s", who, word{"has not decided yet", warn})
	case s.Next.Step != "" && because != "":
		p.line("%s %s%s", who, word{"waits to take the step " + s.Next.Step, warn}, because)
	case s.Next.Step != "" && s.Host.Mode == "observe":
		p.line("%s %s", who, word{"would take the step " + s.Next.Step, good})
	case s.Next.Step != "":
		p.line("%s %s", who, word{"takes the step " + s.Next.Step, good})
	case because != "" && s.Reasons[0].Code != "IDLE":
		p.line("%s %s%s", who, word{"does nothing", warn}, because)
	default:
		p.line("%s %s", who, word{"has nothing to do", good})
	}
}

// writeMeasured shows the health state with the fsync latency and its limit.
func writeMeasured(p *page, h control.Health) {
	text := "nothing measured yet"
	switch l := h.Disk.WAL; {
	case display.Stopped(h.State):
		text = h.Text
	case l.Count > 0:
		text = fmt.Sprintf("WAL fsync p99 %s%s, %d samples, newest %s old",
			display.Latency(l.P99), display.After(", limit ", limit(h.Disk)), l.Count, display.Age(h.Disk.AgeSeconds))
	}
	p.line("health: %s · %s", display.HealthState(h.State), text)
}

func sinceText(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return ", since " + display.Since(t, now)
}
