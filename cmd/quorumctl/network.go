// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/record"
)

func (a *app) networkCommand() *cobra.Command {
	return a.prints(&cobra.Command{
		Use:     "network",
		GroupID: groupInspect,
		Short:   "Show which host reaches which member, and how fast",
		Long: "Show whether each host reaches the peer port and the client port of each member, and how long a\n" +
			"connection takes. Each row shows what one host measured.",
		Example: examples("quorumctl network", "quorumctl network -o wide"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return showStatus(cmd.Context(), a, "read the network", networkOf,
				func(p *page, s control.Status) { writeNetwork(p, networkOf(s)) })
		},
	}, printed{name: "network", of: networkDocument{}})
}

// networkDocument is the document that 'quorumctl network' prints.
type networkDocument struct {
	APIVersion string            `json:"apiVersion"`
	Members    []networkMember   `json:"members"`
	Hosts      []networkHost     `json:"hosts"`
	Omitted    *control.Omitted  `json:"omitted,omitempty"`
	Findings   []control.Finding `json:"findings"` // the network findings of this host
}

// networkMember is a member to which the hosts connect.
type networkMember struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// networkHost is a host that connects to the members.
type networkHost struct {
	Name       string                `json:"name"`
	MemberID   string                `json:"memberID,omitempty"`
	AgeSeconds *float64              `json:"ageSeconds,omitempty"` // age of the host record
	Sees       []record.Reachability `json:"sees"`
}

func networkOf(s control.Status) networkDocument {
	doc := networkDocument{
		Omitted:    s.Omitted,
		APIVersion: s.APIVersion, Members: []networkMember{}, Hosts: []networkHost{}, Findings: []control.Finding{},
	}
	for _, m := range s.Cluster.Members {
		named := networkMember{m.ID, cmp.Or(m.Name, m.ID)}
		doc.Members = append(doc.Members, named)
		if !slices.ContainsFunc(s.Hosts, func(h control.HostRecord) bool { return h.MemberID == m.ID }) {
			doc.Hosts = append(doc.Hosts, networkHost{Name: named.Name, MemberID: m.ID, Sees: []record.Reachability{}})
		}
	}
	for _, h := range s.Hosts {
		seen := h.Sees
		if seen == nil {
			seen = []record.Reachability{}
		}
		doc.Hosts = append(doc.Hosts, networkHost{h.Name, h.MemberID, h.AgeSeconds, seen})
	}
	for _, f := range s.Health.Findings {
		if f.Component == "network" {
			doc.Findings = append(doc.Findings, f)
		}
	}
	slices.SortStableFunc(doc.Members, func(a, b networkMember) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(doc.Hosts, func(a, b networkHost) int { return cmp.Compare(a.Name, b.Name) })
	return doc
}

func writeNetwork(p *page, doc networkDocument) {
	if len(doc.Members) == 0 {
		p.line("this host has not read the member list yet")
		return
	}
	t := table{head: []string{"FROM"}}
	var ids []string
	for _, m := range doc.Members {
		ids = append(ids, m.ID)
		t.head = append(t.head, "TO "+m.Name)
	}
	reaching, checks := 0, 0
	for _, h := range doc.Hosts {
		if h.MemberID == "" && !p.wide && display.ReachesAll(h.Sees, ids) {
			reaching++
			continue
		}
		row := cells(h.Name)
		for _, m := range doc.Members {
			row = append(row, word(display.Reachability(h.MemberID, h.Sees, m.ID)))
		}
		t.add(row...)
	}
	for _, h := range doc.Hosts {
		checks += len(h.Sees)
	}
	p.table(t)
	writeOmitted(p, doc.Omitted)
	if reaching > 0 {
		p.line("%s every member: -o wide shows them",
			display.Count(reaching, "host without a member reaches", "hosts without a member reach"))
	}
	if checks == 0 {
		p.line("no host has published measurements yet")
	}
	for _, f := range doc.Findings {
		p.line("[%s] %s: %s", display.HealthState(f.State), word{f.Code, bold}, f.Text)
		writeRemedy(p, f.Remedy)
	}
}
