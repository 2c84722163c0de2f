// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/control"
)

// writeStatus writes what an operator wants to know first, first.
func writeStatus(p *page, s control.Status) {
	writeCluster(p, s)
	if s.Pause != nil {
		writePause(p, *s.Pause, s.Time)
	}
	if s.Op != nil {
		writeOp(p, s)
		writeOrphan(p, *s.Op)
	}
	writeAsked(p, s)
	writeBackup(p, s)
	writeLoop(p, s.Loop)
	p.raw("")
	if t := hostTable(p, s); len(t.rows) > 0 {
		p.table(t)
		p.raw("")
	}
	writeThisHost(p, s)
}

// writeCluster writes the line that says how many more failures the cluster survives.
func writeCluster(p *page, s control.Status) {
	c := s.Cluster
	if c.ID == "" {
		p.line("%s · no cluster in view", word{c.Name, bold})
	} else {
		p.line("%s · voters %s · %s%s%s", word{c.Name, bold}, voters(c), tolerance(c), standbys(c),
			part("etcd", c.Version))
	}
	if !c.Reachable && (c.ID != "" || c.Error != "") {
		what := "etcd has no quorum: "
		if silent(c) {
			what = "etcd does not answer: "
		}
		p.line("%s", word{what + cmp.Or(c.Error, "no cause is known"), bad})
		if c.AgeSeconds != nil && c.ID != "" {
			but := "what stands here"
			if !silent(c) {
				but = "who answers is of now; what else stands here"
			}
			p.line("%s about the cluster is %s old", but, age(c.AgeSeconds))
		}
	}
	if p.wide && c.ID != "" {
		p.line("cluster ID %s", c.ID)
	}
}

// silent tells whether no member of a cluster answers: perhaps it is this host that is cut off.
func silent(c control.Cluster) bool {
	return !c.Reachable && !slices.ContainsFunc(c.Members, func(m control.Member) bool { return m.Live })
}

func voters(c control.Cluster) word {
	w := word{text: fmt.Sprintf("%d/%d", c.Voters, c.Target)}
	if c.Voters != c.Target {
		w.style = warn
	}
	down := 0
	for _, m := range c.Members {
		if m.Role == control.RoleVoter && !m.Live {
			down++
		}
	}
	switch {
	case down > 0 && silent(c):
		w = word{w.text + ", none answers", bad}
	case down > 0:
		w = word{fmt.Sprintf("%s, %d down", w.text, down), bad}
	}
	return w
}

// short tells whether the cluster is short of a voter: then what to type stands where people look first.
func short(c control.Cluster) bool {
	return c.ID != "" && (!c.Reachable || slices.ContainsFunc(c.Members, func(m control.Member) bool {
		return m.Role == control.RoleVoter && !m.Live
	}))
}

func tolerance(c control.Cluster) word {
	switch {
	case silent(c):
		return word{"no quorum in view", bad}
	case c.FailureTolerance < 0:
		return word{"no quorum", bad}
	case c.FailureTolerance == 0:
		return word{"can lose none", bad}
	}
	return word{fmt.Sprintf("can lose %d", c.FailureTolerance), good}
}

func standbys(c control.Cluster) string {
	if c.Standbys == 0 {
		return ""
	}
	return " · " + count(c.Standbys, "standby", "standbys")
}

// part is a piece of the first line, if there is something to say.
func part(name, value string) string {
	if value == "" {
		return ""
	}
	return " · " + name + " " + value
}

func writePause(p *page, pause control.Pause, now time.Time) {
	p.line("%s by %s until %s (%s left): %s. quorumctl resume ends it", word{"PAUSED", bad},
		pause.By, stamp(pause.Until), span(pause.Until.Sub(now)), pause.Reason)
}

// writeOp writes the operation in flight as one line.
func writeOp(p *page, s control.Status) {
	op := *s.Op
	if op.Kind == removeOp {
		p.line("%s of member %s, by %s: %s for %s · by %s: %s", word{op.Kind, bold}, cmp.Or(op.Target, op.MemberID),
			op.HostName, op.Phase,
			span(s.Time.Sub(op.Started)), op.By, op.Reason)
		return
	}
	target := ""
	if op.Target != "" {
		target = " as " + op.Target
	}
	progress := ""
	switch {
	case op.Progress != "":
		progress = " · " + op.Progress
	case op.Kind == cycleOp && op.Reason != "":
		progress = " · by " + op.By + ": " + op.Reason
	}
	p.line("%s of %s%s: %s for %s%s%s", word{op.Kind, bold}, op.HostName, target, op.Phase,
		span(s.Time.Sub(op.Started)),
		patience(op, s.Time), progress)
}

// removeOp is the kind of the operation that takes a member out for good.
const removeOp = "remove"

// cycleOp is the kind of the operation that takes a host down and brings it back.
const cycleOp = "cycle"

// writeOrphan writes something only when nobody drives the operation.
func writeOrphan(p *page, op control.Op) {
	if op.Orphaned {
		p.line("  %s", word{op.HostName + " no longer holds the lock: quorumctl op show", bad})
	}
}

func patience(op control.Op, now time.Time) word {
	switch {
	case op.Deadline.IsZero():
		return word{}
	case now.After(op.Deadline):
		return word{", OVERDUE by " + span(now.Sub(op.Deadline)), bad}
	}
	return word{text: fmt.Sprintf(", %s left", span(op.Deadline.Sub(now)))}
}

// writeLoop writes something only when the daemon answers without working.
func writeLoop(p *page, l control.Loop) {
	if l.AgeSeconds == nil {
		p.line("%s", word{"quorumd has just started: its first look is not over", warn})
		return
	}
	const rounds = 5 // missed ones
	if *l.AgeSeconds > max(rounds*l.IntervalSeconds, l.StuckAfterSeconds) {
		p.line("%s", word{
			"quorumd is stuck: its loop has not run for " + age(l.AgeSeconds) + ". journalctl -u quorumd",
			bad,
		})
	}
}

// hostTable lists the hosts by name, and members that no host claims.
func hostTable(p *page, s control.Status) table {
	members := map[string]control.Member{}
	for _, m := range s.Cluster.Members {
		members[m.ID] = m
	}
	t := table{head: []string{"HOST", "DOMAIN", "ROLE", "HEALTH", "FSYNC P99", "ETCD", "SEEN", "WAITS FOR"}}
	if p.wide {
		t.head = append([]string{"HOST", "ID", "MODE", "QUORUMD", "MEMBER", "LAG", "DB", "CLIENT URLS"}, t.head[1:]...)
	}
	hosts := slices.SortedFunc(slices.Values(s.Hosts), func(a, b control.HostRecord) int {
		return cmp.Compare(a.Name, b.Name)
	})
	for _, h := range hosts {
		m, isMember := members[h.MemberID]
		delete(members, h.MemberID)
		row := []word{{text: h.Name}}
		if p.wide {
			row = append(row, cells(h.ID, h.Mode, h.Version, h.MemberID, lag(m), database(m),
				strings.Join(m.ClientURLs, ","))...)
		}
		t.add(append(row, word{text: h.Domain}, roleOf(h, m, isMember), verdict(h.Health), word{text: p99(h, s)},
			word{text: h.EtcdVersion}, word{text: age(h.AgeSeconds)}, word{text: h.Waiting})...)
	}
	for _, m := range s.Cluster.Members {
		if _, unclaimed := members[m.ID]; unclaimed {
			t.add(memberRow(p, m)...)
		}
	}
	return t
}

// memberRow is the row of a member from whose host nothing is heard.
func memberRow(p *page, m control.Member) []word {
	row := []word{{text: cmp.Or(m.Name, m.ID)}}
	if p.wide {
		row = append(row, cells("", "", "", m.ID, lag(m), database(m), strings.Join(m.ClientURLs, ","))...)
	}
	role := roleOf(control.HostRecord{Role: m.Role}, m, true)
	return append(row, word{}, role, word{"no agent", warn}, word{}, word{text: m.Version}, word{}, word{})
}

func roleOf(h control.HostRecord, m control.Member, isMember bool) word {
	w := word{text: string(h.Role)}
	switch {
	case isMember && !m.Live:
		w = word{w.text + ", down", bad}
	case m.Leader:
		w.text += ", leader"
	}
	return w
}

// verdict paints a health state. Unknown is neither good nor bad.
func verdict(state string) word {
	switch state {
	case "OK":
		return word{state, good}
	case "SLOW", "STALLED", "FAILED":
		return word{state, bad}
	case "", "UNKNOWN":
		return word{cmp.Or(state, "UNKNOWN"), plain}
	}
	return word{state, warn}
}

// p99 is exact for the host that answers. Others publish theirs rounded up.
func p99(h control.HostRecord, s control.Status) string {
	if failed(h.Health) {
		return "-"
	}
	if wal := s.Health.Disk.WAL; h.ID == s.Host.ID && wal.Count > 0 {
		return latency(wal.P99)
	}
	if h.P99Seconds == 0 {
		return "-"
	}
	return "≤ " + latency(h.P99Seconds)
}

func lag(m control.Member) string {
	if m.Lag == nil {
		return ""
	}
	return fmt.Sprint(*m.Lag)
}

func database(m control.Member) string {
	if m.DBSize == 0 {
		return ""
	}
	return size(float64(m.DBSize))
}

// next says what the host that answers will do.
func next(s control.Status) string {
	if s.Next.Text == "" && s.Loop.AgeSeconds == nil {
		return "not known yet"
	}
	return cmp.Or(s.Next.Text, "nothing")
}

// lastRole says what the host that answers is. Without a quorum that is what its record said last, as it stands in its
// row.
func lastRole(s control.Status) string {
	for _, h := range s.Hosts {
		if s.Role == control.RoleUnknown && h.ID == s.Host.ID && h.Role != control.RoleUnknown && h.Role != "" {
			return string(h.Role) + " when last seen"
		}
	}
	return string(s.Role)
}

// writeThisHost writes what the host that answers does next, or why it does not.
func writeThisHost(p *page, s control.Status) {
	p.line("this host: %s · %s · %s · mode %s", word{s.Host.Name, bold}, lastRole(s), verdict(s.Health.State),
		s.Host.Mode)
	p.line("  next: %s", next(s))
	writeMutes(p, s, "  ")
	if len(s.Reasons) == 0 {
		return
	}
	first, more, n := s.Reasons[0], "", 0
	for _, r := range s.Reasons[1:] {
		if !r.Caution {
			n++
		}
	}
	if n > 0 {
		more = fmt.Sprintf(" (and %s: quorumctl explain)", count(n, "more reason", "more reasons"))
	}
	p.line("  because %s: %s%s", word{first.Code, warn}, first.Text, more)
	if short(s.Cluster) && first.Remedy != "" {
		p.line("  → %s", first.Remedy)
	}
	for _, r := range s.Reasons[1:] {
		if r.Caution {
			p.line("  caution %s: %s", word{r.Code, warn}, r.Text)
		}
	}
}
