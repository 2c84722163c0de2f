// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/policy"
)

// grade is the exit code of a Nagios plugin.
type grade int

// CRITICAL means that writes fail, or that the next failure stops them.
const (
	gradeOK grade = iota
	gradeWarning
	gradeCritical
	gradeUnknown
)

func (g grade) String() string { return [...]string{"OK", "WARNING", "CRITICAL", "UNKNOWN"}[g] }

func (a *app) checkCommand() *cobra.Command {
	// A monitoring system reads one line and accepts only the exit codes 0 to 3, so wrong arguments are UNKNOWN, too.
	result := func(g grade, text string) error {
		fmt.Fprintf(a.out, "QUORUMD %s - %s\n", g, display.Clean(text))
		if g != gradeOK {
			return &failure{code: int(g)} // the printed line already names the cause
		}
		return nil
	}
	command := a.prints(&cobra.Command{
		Use:     "check",
		GroupID: groupInspect,
		Short:   "Run a Nagios-compatible health check",
		Long: "Print one line with performance data and exit as a Nagios plugin: 0 OK, 1 WARNING, 2 CRITICAL\n" +
			"(writes fail, or the next failure stops them), 3 UNKNOWN (quorumd does not answer).",
		Example: examples("quorumctl check", "quorumctl check || echo \"exit status $?\""),
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.NoArgs(cmd, args); err != nil {
				return result(gradeUnknown, "cannot read the command line: "+err.Error())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.client().Status(cmd.Context())
			if err != nil {
				return result(gradeUnknown, err.Error())
			}
			g, text := gradeStatus(s)
			return result(g, strings.ReplaceAll(text, "|", "/")+display.After(" | ", perfdata(s)))
		},
	}, printed{instead: "the format of Nagios plugins"})
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return result(gradeUnknown, "cannot read the command line: "+err.Error())
	})
	return command
}

// gradeStatus returns the state and the text of the plugin's line.
func gradeStatus(s control.Status) (grade, string) {
	c, h := s.Cluster, s.Health
	hung := s.Loop.AgeSeconds != nil && s.Loop.StuckAfterSeconds > 0 && *s.Loop.AgeSeconds > s.Loop.StuckAfterSeconds
	late := s.Op != nil && !s.Op.Deadline.IsZero() && s.Time.After(s.Op.Deadline)
	planned := display.TakenDown(s.Op) && !late && len(unexpectedlyDown(s)) == 0
	switch {
	case hung:
		return gradeUnknown, fmt.Sprintf("quorumd is stuck: no round for %.0f s, limit %.0f s", *s.Loop.AgeSeconds,
			s.Loop.StuckAfterSeconds)
	case c.ID != "" && !c.Reachable:
		return gradeCritical, "no quorum" + display.After(": ", c.Error)
	case !c.Reachable:
		return gradeWarning, "no cluster yet" + display.After(": ", c.Error)
	case c.FaultTolerance < 1 && c.Voters > 2 && !planned:
		return gradeCritical, fmt.Sprintf("fault tolerance 0 with %d voters%s", c.Voters, firstReason(s))
	case h.State == "FAILED" || h.State == "STALLED" || h.State == "SLOW":
		return gradeWarning, fmt.Sprintf("health %s: %s", h.State, h.Text)
	case late:
		return gradeWarning, fmt.Sprintf("%s of %s is overdue", s.Op.Kind, s.Op.HostName)
	case c.Voters < c.Target:
		return gradeWarning, fmt.Sprintf("%d of %d voters%s", c.Voters, c.Target, firstReason(s))
	}
	if down := unexpectedlyDown(s); len(down) > 0 {
		return gradeWarning, "voters down: " + strings.Join(down, ", ") + firstReason(s)
	}
	for _, r := range s.Reasons {
		if slices.Contains(stranded(), r.Code) {
			return gradeWarning, r.Code + ": " + r.Text
		}
	}
	if names := withoutAgent(s, late); len(names) > 0 {
		return gradeWarning, "no quorumd on members: " + strings.Join(names, ", ")
	}
	for _, r := range s.Reasons {
		if r.Caution {
			return gradeWarning, r.Code + ": " + r.Text
		}
	}
	var known []string
	for _, f := range h.Findings {
		if !f.Muted {
			return gradeWarning, f.Code + ": " + f.Text
		}
		known = append(known, f.Code)
	}
	return gradeOK, fmt.Sprintf("%s is a %s, health %s, %d of %d voters, fault tolerance %d%s", s.Host.Name, s.Role,
		h.State,
		c.Voters, c.Target, c.FaultTolerance, display.After(", muted: ", strings.Join(known, ", ")))
}

// unexpectedlyDown names the voters that are down, except the one that the current operation has taken down.
func unexpectedlyDown(s control.Status) (names []string) {
	for _, m := range s.Cluster.Members {
		taken := display.TakenDown(s.Op) && (m.ID == s.Op.MemberID || m.Name != "" && m.Name == s.Op.HostName)
		if m.Role == policy.RoleVoter && !m.Live && !taken {
			names = append(names, cmp.Or(m.Name, m.ID))
		}
	}
	slices.Sort(names)
	return names
}

// stranded returns the codes of the reasons why a member does not come back by itself.
func stranded() []string {
	return []string{
		"MEMBER_LOST", "NOT_BACK", "DATA_UNUSABLE", "DATA_UNKNOWN", "HOOK_FAILED",
	}
}

// withoutAgent names the members without an agent, whose disks are not measured and which take part in no operation. It
// omits the host of the current operation, unless the operation is late.
func withoutAgent(s control.Status, late bool) (names []string) {
	if len(s.Hosts) == 0 {
		return nil // quorumd has not read the host records yet
	}
	for _, m := range display.WithoutAgent(s) {
		name := cmp.Or(m.Name, m.ID)
		inOperation := s.Op != nil && !late && (m.ID == s.Op.MemberID || name == s.Op.HostName)
		if !inOperation && name != s.Host.Name { // the agent of this host has just answered
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// firstReason returns a separator and the first reason, or "" if there is no reason.
func firstReason(s control.Status) string {
	if len(s.Reasons) == 0 {
		return ""
	}
	return "; " + s.Reasons[0].Code + ": " + s.Reasons[0].Text
}

// perfdata formats the measurements as Nagios plugins do: label=value[unit];warning;;minimum, without exponents.
func perfdata(s control.Status) string {
	d := s.Health.Disk
	var out []string
	add := func(label string, value float64, unit string, warning float64) {
		plain := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
		text := label + "=" + plain(value) + unit + ";"
		if warning > 0 {
			text += plain(warning)
		}
		out = append(out, text+";;0")
	}
	if d.WAL.Count > 0 {
		add("fsync_wal_p99", d.WAL.P99, "s", d.LimitSeconds)
	}
	if d.Direct.Count > 0 {
		add("fsync_direct_p99", d.Direct.P99, "s", 0)
	}
	if d.FreeBytes > 0 {
		add("disk_free", float64(d.FreeBytes), "B", 0)
	}
	if c := s.Cluster; c.Reachable {
		add("voters", float64(c.Voters), "", 0)
		out = append(out, fmt.Sprintf("tolerance=%d", c.FaultTolerance)) // the fault tolerance may be negative
		add("standbys", float64(c.Standbys), "", 0)
	}
	return strings.Join(out, " ")
}
