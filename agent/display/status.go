// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package display

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

// Unreachable reports whether no member of a cluster answers this host. This host may itself be cut off.
func Unreachable(c control.Cluster) bool {
	return !c.Reachable && !slices.ContainsFunc(c.Members, func(m control.Member) bool { return m.Live })
}

// Voters returns how many voters are up, and the target if the number of voters differs from it.
func Voters(c control.Cluster) Styled {
	down := 0
	for _, m := range c.Members {
		if m.Role == policy.RoleVoter && !m.Live {
			down++
		}
	}
	w := Styled{Text: fmt.Sprintf("%d of %d voters up", c.Voters-down, c.Voters)}
	if c.Voters != c.Target {
		w = Styled{fmt.Sprintf("%s (target %d)", w.Text, c.Target), Warn}
	}
	if down > 0 {
		w.Tone = Bad
	}
	return w
}

// Short reports whether a known cluster has no quorum or a voter that is down. If so, quorumctl status shows which
// command to run first.
func Short(c control.Cluster) bool {
	return c.ID != "" && (!c.Reachable || slices.ContainsFunc(c.Members, func(m control.Member) bool {
		return m.Role == policy.RoleVoter && !m.Live
	}))
}

// WithoutAgent returns the members that no host record names.
func WithoutAgent(s control.Status) []control.Member {
	claimed := map[string]bool{}
	for _, h := range s.Hosts {
		claimed[h.MemberID] = true
	}
	return slices.DeleteFunc(slices.Clone(s.Cluster.Members), func(m control.Member) bool { return claimed[m.ID] })
}

// Omitted returns how many hosts are missing from a status, and why; "" if none is.
func Omitted(o *control.Omitted) string {
	if o == nil {
		return ""
	}
	return fmt.Sprintf("%s not listed, %d of them not OK (limits: %d hosts, %s)",
		Count(o.Hosts, "host is", "hosts are"), o.NotOK, control.MaxHosts, Size(control.MaxHostBytes))
}

// Tolerance returns the fault tolerance: how many more voters may fail.
func Tolerance(c control.Cluster) Styled {
	switch {
	case Unreachable(c):
		return Styled{"no voter answers", Bad}
	case c.FaultTolerance < 0:
		return Styled{"no quorum", Bad}
	case c.FaultTolerance == 0:
		return Styled{"fault tolerance 0", Bad}
	}
	return Styled{fmt.Sprintf("fault tolerance %d", c.FaultTolerance), Good}
}

// Standbys returns the number of standbys, after a separator; "" if there are none.
func Standbys(c control.Cluster) string {
	if c.Standbys == 0 {
		return ""
	}
	return " · " + Count(c.Standbys, "standby", "standbys")
}

// timeLeft returns how much time an operation has left before its deadline or how long it is overdue, after a comma;
// empty if the operation has no deadline.
func timeLeft(op control.Op, now time.Time) Styled {
	switch {
	case op.Deadline.IsZero():
		return Styled{}
	case now.After(op.Deadline):
		return Styled{", OVERDUE by " + Span(now.Sub(op.Deadline)), Bad}
	}
	return Styled{Text: fmt.Sprintf(", %s left", Span(op.Deadline.Sub(now)))}
}

// RoleOf returns the role of a host, and whether its member is down or is the leader.
func RoleOf(h control.HostRecord, m control.Member, isMember bool) Styled {
	role := h.Role
	if h.ID != "" && role == policy.RoleLearner {
		role = "learner (permanent)"
	}
	w := Styled{Text: retiredRole(h.Retired, role)}
	switch {
	case isMember && !m.Live:
		w = Styled{w.Text + ", down", Bad}
	case m.Leader:
		w.Text += ", leader"
	}
	return w
}

// retiredRole describes a host's role and, if the host is retired, the state of its retirement.
func retiredRole(state string, role policy.Role) string {
	switch state {
	case "":
		return string(role)
	case control.RetiredLeft:
		return "retired, can be switched off"
	case control.RetiredLeaves:
		return "retired, leaves"
	}
	return string(role) + ", retired"
}

// LastSeen returns how long ago a host was last known to run, from its record or from its member's last answer.
func LastSeen(h control.HostRecord) string {
	if h.Former {
		return "-"
	}
	if h.SilentSeconds != nil && *h.SilentSeconds >= 1 {
		return "≤ " + Age(h.SilentSeconds)
	}
	return Age(h.AgeSeconds)
}

// HealthState styles a health state. UNKNOWN has no tone.
func HealthState(state string) Styled {
	switch state {
	case "OK":
		return Styled{state, Good}
	case "SLOW", "STALLED", "FAILED":
		return Styled{state, Bad}
	case "", "UNKNOWN":
		return Styled{cmp.Or(state, "UNKNOWN"), Plain}
	}
	return Styled{state, Warn}
}

// P99 returns a host's p99. For the host that serves the status, it is exact. Other hosts publish their p99 rounded up.
func P99(h control.HostRecord, s control.Status) string {
	if Stopped(h.Health) {
		return "-"
	}
	if wal := s.Health.Disk.WAL; h.ID == s.Host.ID && wal.Count > 0 {
		return Latency(wal.P99)
	}
	if h.P99Seconds == 0 {
		return "-"
	}
	return "≤ " + Latency(h.P99Seconds)
}

// Lag returns how many entries a member is behind the leader; "" if unknown.
func Lag(m control.Member) string {
	if m.Lag == nil {
		return ""
	}
	return fmt.Sprint(*m.Lag)
}

// Database returns the size of a member's database; "" if it is unknown.
func Database(m control.Member) string {
	if m.DBSize == 0 {
		return ""
	}
	return Size(float64(m.DBSize))
}

// Next returns what the answering host does next.
func Next(s control.Status) string {
	if s.Next.Text == "" && s.Loop.AgeSeconds == nil {
		return "not known yet"
	}
	return cmp.Or(s.Next.Text, "nothing")
}

// LastRole returns the role of the answering host. If it is unknown, as without a quorum, LastRole returns the last
// published role, which the host table also shows.
func LastRole(s control.Status) string {
	for _, h := range s.Retired {
		if h.ID == s.Host.ID && s.Role != policy.RoleUnknown {
			return retiredRole(h.State, s.Role)
		}
	}
	for _, h := range s.Hosts {
		if s.Role == policy.RoleUnknown && h.ID == s.Host.ID && h.Role != policy.RoleUnknown && h.Role != "" {
			return string(h.Role) + " when last seen"
		}
	}
	return string(s.Role)
}

// Stopped reports whether a health state makes earlier measurements meaningless.
func Stopped(state string) bool { return state == "FAILED" || state == "STALLED" }
