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
	"github.com/quorumd/quorumd/agent/words"
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
		p.line("%s · voters %s · %s%s%s", word{c.Name, bold}, words.Voters(c), words.Tolerance(c), words.Standbys(c),
			part("etcd", c.Version))
	}
	if !c.Reachable && (c.ID != "" || c.Error != "") {
		what := "etcd has no quorum: "
		if words.Silent(c) {
			what = "etcd does not answer: "
		}
		p.line("%s", word{what + cmp.Or(c.Error, "no cause is known"), bad})
		if c.AgeSeconds != nil && c.ID != "" {
			but := "what stands here"
			if !words.Silent(c) {
				but = "who answers is of now; what else stands here"
			}
			p.line("%s about the cluster is %s old", but, words.Age(c.AgeSeconds))
		}
	}
	if p.wide && c.ID != "" {
		p.line("cluster ID %s", c.ID)
	}
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
		pause.By, words.Stamp(pause.Until), words.Span(pause.Until.Sub(now)), pause.Reason)
}

// writeOp writes the operation in flight as one line.
func writeOp(p *page, s control.Status) {
	op := *s.Op
	if op.Kind == removeOp {
		p.line("%s of member %s, by %s: %s for %s · by %s: %s", word{op.Kind, bold}, cmp.Or(op.Target, op.MemberID),
			op.HostName, op.Phase,
			words.Span(s.Time.Sub(op.Started)), op.By, op.Reason)
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
		words.Span(s.Time.Sub(op.Started)),
		words.Patience(op, s.Time), progress)
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

// writeLoop writes something only when the daemon answers without working.
func writeLoop(p *page, l control.Loop) {
	if l.AgeSeconds == nil {
		p.line("%s", word{"quorumd has just started: its first look is not over", warn})
		return
	}
	const rounds = 5 // missed ones
	if *l.AgeSeconds > max(rounds*l.IntervalSeconds, l.StuckAfterSeconds) {
		p.line("%s", word{
			"quorumd is stuck: its loop has not run for " + words.Age(l.AgeSeconds) + ". journalctl -u quorumd",
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
		row := []word{{Text: h.Name}}
		if p.wide {
			row = append(row, cells(h.ID, h.Mode, h.Version, h.MemberID, words.Lag(m), words.Database(m),
				strings.Join(m.ClientURLs, ","))...)
		}
		t.add(append(row, word{Text: h.Domain}, word(words.RoleOf(h, m, isMember)), word(words.Verdict(h.Health)),
			word{Text: words.P99(h, s)}, word{Text: h.EtcdVersion}, word{Text: words.Age(h.AgeSeconds)},
			word{Text: h.Waiting})...)
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
	row := []word{{Text: cmp.Or(m.Name, m.ID)}}
	if p.wide {
		row = append(row, cells("", "", "", m.ID, words.Lag(m), words.Database(m), strings.Join(m.ClientURLs, ","))...)
	}
	role := word(words.RoleOf(control.HostRecord{Role: m.Role}, m, true))
	return append(row, word{}, role, word{"no agent", warn}, word{}, word{Text: m.Version}, word{}, word{})
}

// writeThisHost writes what the host that answers does next, or why it does not.
func writeThisHost(p *page, s control.Status) {
	p.line("this host: %s · %s · %s · mode %s", word{s.Host.Name, bold}, words.LastRole(s),
		words.Verdict(s.Health.State), s.Host.Mode)
	p.line("  next: %s", words.Next(s))
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
		more = fmt.Sprintf(" (and %s: quorumctl explain)", words.Count(n, "more reason", "more reasons"))
	}
	p.line("  because %s: %s%s", word{first.Code, warn}, first.Text, more)
	if words.Short(s.Cluster) && first.Remedy != "" {
		p.line("  → %s", first.Remedy)
	}
	for _, r := range s.Reasons[1:] {
		if r.Caution {
			p.line("  caution %s: %s", word{r.Code, warn}, r.Text)
		}
	}
}
