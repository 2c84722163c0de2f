// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
)

// writeStatus shows the most important state first: the cluster, the agent's loop, the summary, the hosts, then this
// host.
func writeStatus(p *page, s control.Status) {
	writeLines(p, display.Cluster(s.Cluster)...)
	if p.wide && s.Cluster.ID != "" {
		p.line("cluster ID %s", s.Cluster.ID)
	}
	writeLines(p, display.Loop(s.Loop)...)
	for _, section := range display.Summary(s) {
		for i, line := range section.Lines {
			name := ""
			if i == 0 {
				name = section.Name
			}
			p.labelled(fmt.Sprintf("  %-10s  ", name), line)
		}
	}
	p.raw("")
	if t := hostTable(p, s); len(t.rows) > 0 {
		p.table(t)
		writeOmitted(p, s.Omitted)
		p.raw("")
	}
	writeThisHost(p, s)
}

func writeOmitted(p *page, o *control.Omitted) {
	if o != nil {
		p.line("%s", word{display.Omitted(o), warn})
	}
}

// hostTable returns the hosts, sorted by name, followed by the members without an agent.
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
		row := []word{{Text: h.Name}}
		if p.wide {
			row = append(row, cells(h.ID, h.Mode, h.Version, h.MemberID, display.Lag(m), display.Database(m),
				strings.Join(m.ClientURLs, ","))...)
		}
		t.add(append(row, word{Text: h.Domain}, word(display.RoleOf(h, m, isMember)),
			word(display.HealthState(h.Health)),
			word{Text: display.P99(h, s)}, word{Text: h.EtcdVersion}, word{Text: display.LastSeen(h)},
			word{Text: h.Waiting})...)
	}
	for _, m := range display.WithoutAgent(s) {
		t.add(memberRow(p, m)...)
	}
	return t
}

// memberRow returns the row of a member without an agent.
func memberRow(p *page, m control.Member) []word {
	row := []word{{Text: cmp.Or(m.Name, m.ID)}}
	if p.wide {
		row = append(row, cells("", "", "", m.ID, display.Lag(m), display.Database(m),
			strings.Join(m.ClientURLs, ","))...)
	}
	role := word(display.RoleOf(control.HostRecord{Role: m.Role}, m, true))
	return append(row, word{}, role, word{"no agent", warn}, word{}, word{Text: m.Version}, word{}, word{})
}

// writeThisHost shows the state of this host, its next step, its mutes, the first reason why it waits, and cautions.
func writeThisHost(p *page, s control.Status) {
	p.line("this host: %s · %s · %s · mode %s", word{s.Host.Name, bold}, display.LastRole(s),
		display.HealthState(s.Health.State), s.Host.Mode)
	p.line("  next: %s", display.Next(s))
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
		more = fmt.Sprintf(" (and %s: quorumctl explain)", display.Count(n, "more reason", "more reasons"))
	}
	p.line("  because %s: %s%s", word{first.Code, warn}, first.Text, more)
	if display.Short(s.Cluster) && first.Remedy != "" {
		p.line("  → %s", first.Remedy)
	}
	for _, r := range s.Reasons[1:] {
		if r.Caution {
			p.line("  caution %s: %s", word{r.Code, warn}, r.Text)
		}
	}
}
