// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package display

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/control"
)

// Unreachable reports whether no member of a cluster answers. This host may be the one that is cut off.
func Unreachable(c control.Cluster) bool {
	return !c.Reachable && !slices.ContainsFunc(c.Members, func(m control.Member) bool { return m.Live })
}

// Voters says how many voters there are of those that are wanted, and how many of them are down.
func Voters(c control.Cluster) Styled {
	w := Styled{Text: fmt.Sprintf("%d/%d", c.Voters, c.Target)}
	if c.Voters != c.Target {
		w.Tone = Warn
	}
	down := 0
	for _, m := range c.Members {
		if m.Role == control.RoleVoter && !m.Live {
			down++
		}
	}
	switch {
	case down > 0 && Unreachable(c):
		w = Styled{w.Text + ", none answers", Bad}
	case down > 0:
		w = Styled{fmt.Sprintf("%s, %d down", w.Text, down), Bad}
	}
	return w
}

// Short tells whether the cluster is short of a voter: then what to type stands where people look first.
func Short(c control.Cluster) bool {
	return c.ID != "" && (!c.Reachable || slices.ContainsFunc(c.Members, func(m control.Member) bool {
		return m.Role == control.RoleVoter && !m.Live
	}))
}

// WithoutAgent gives the members whose host says nothing: its agent has never run, or is gone.
func WithoutAgent(s control.Status) []control.Member {
	claimed := map[string]bool{}
	for _, h := range s.Hosts {
		claimed[h.MemberID] = true
	}
	return slices.DeleteFunc(slices.Clone(s.Cluster.Members), func(m control.Member) bool { return claimed[m.ID] })
}

// Omitted says how many hosts a status does not list, and why; nothing when it lists all.
func Omitted(o *control.Omitted) string {
	if o == nil {
		return ""
	}
	return fmt.Sprintf("%s not listed, %d of them not OK (limits: %d hosts, %s)",
		Count(o.Hosts, "host is", "hosts are"), o.NotOK, control.MaxHosts, Size(control.MaxHostBytes))
}

// Tolerance says how many voters may fail from here on.
func Tolerance(c control.Cluster) Styled {
	switch {
	case Unreachable(c):
		return Styled{"no quorum in view", Bad}
	case c.FailureTolerance < 0:
		return Styled{"no quorum", Bad}
	case c.FailureTolerance == 0:
		return Styled{"can lose none", Bad}
	}
	return Styled{fmt.Sprintf("can lose %d", c.FailureTolerance), Good}
}

// Standbys says how many members without a vote are kept warm; nothing when there are none.
func Standbys(c control.Cluster) string {
	if c.Standbys == 0 {
		return ""
	}
	return " · " + Count(c.Standbys, "standby", "standbys")
}

// patience says how much of its time an operation has left; nothing when nobody has said how long it takes.
func patience(op control.Op, now time.Time) Styled {
	switch {
	case op.Deadline.IsZero():
		return Styled{}
	case now.After(op.Deadline):
		return Styled{", OVERDUE by " + Span(now.Sub(op.Deadline)), Bad}
	}
	return Styled{Text: fmt.Sprintf(", %s left", Span(op.Deadline.Sub(now)))}
}

// RoleOf says what a host is, and its member when it has one.
func RoleOf(h control.HostRecord, m control.Member, isMember bool) Styled {
	w := Styled{Text: string(h.Role)}
	switch {
	case isMember && !m.Live:
		w = Styled{w.Text + ", down", Bad}
	case m.Leader:
		w.Text += ", leader"
	}
	return w
}

// LastSeen returns how long ago a host was last known to run: when its record was read, or before its member fell
// silent.
func LastSeen(h control.HostRecord) string {
	if h.Former {
		return "-"
	}
	if h.SilentSeconds != nil && *h.SilentSeconds >= 1 {
		return "≤ " + Age(h.SilentSeconds)
	}
	return Age(h.AgeSeconds)
}

// Verdict paints a health state. Unknown is neither good nor bad.
func Verdict(state string) Styled {
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

// P99 is exact for the host that answers. Others publish theirs rounded up.
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

// Lag says by how many entries a member is behind the leader; nothing when that is not known.
func Lag(m control.Member) string {
	if m.Lag == nil {
		return ""
	}
	return fmt.Sprint(*m.Lag)
}

// Database says how large a member's database is; nothing when that is not known.
func Database(m control.Member) string {
	if m.DBSize == 0 {
		return ""
	}
	return Size(float64(m.DBSize))
}

// Next says what the host that answers will do.
func Next(s control.Status) string {
	if s.Next.Text == "" && s.Loop.AgeSeconds == nil {
		return "not known yet"
	}
	return cmp.Or(s.Next.Text, "nothing")
}

// LastRole says what the host that answers is. Without a quorum that is what its record said last, as it stands in its
// row.
func LastRole(s control.Status) string {
	for _, h := range s.Hosts {
		if s.Role == control.RoleUnknown && h.ID == s.Host.ID && h.Role != control.RoleUnknown && h.Role != "" {
			return string(h.Role) + " when last seen"
		}
	}
	return string(s.Role)
}

// Stopped tells whether a verdict makes what was measured before it worthless.
func Stopped(verdict string) bool { return verdict == "FAILED" || verdict == "STALLED" }
