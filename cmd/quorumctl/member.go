// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
)

func (a *app) memberCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "member",
		GroupID: groupOperate,
		Short:   "Show etcd's members, or remove one that is gone for good",
		Args:    onlySubcommands,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(a.memberListCommand(), a.memberRemoveCommand())
	return cmd
}

// members is the document of member list.
type members struct {
	APIVersion string   `json:"apiVersion"`
	Reachable  bool     `json:"reachable"`
	AgeSeconds *float64 `json:"ageSeconds,omitempty"`
	Members    []member `json:"members"`
}

// member is an etcd member, with what is known of its host's agent.
type member struct {
	control.Member
	// the name of the host whose agent says that it is its member; empty when none does
	Host    string   `json:"host,omitempty"`
	Quorumd string   `json:"quorumd,omitempty"` // the version of that agent
	Seen    *float64 `json:"seenSeconds,omitempty"`
}

func membersOf(s control.Status) members {
	doc := members{
		APIVersion: s.APIVersion, Reachable: s.Cluster.Reachable, AgeSeconds: s.Cluster.AgeSeconds,
		Members: []member{},
	}
	for _, m := range s.Cluster.Members {
		row := member{Member: m}
		if i := slices.IndexFunc(s.Hosts, func(h control.HostRecord) bool { return h.MemberID == m.ID }); i >= 0 {
			row.Host, row.Quorumd, row.Seen = s.Hosts[i].Name, s.Hosts[i].Version, s.Hosts[i].AgeSeconds
		}
		doc.Members = append(doc.Members, row)
	}
	slices.SortStableFunc(doc.Members, func(a, b member) int { return cmp.Compare(a.Name, b.Name) })
	return doc
}

func (a *app) memberListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "Show etcd's members, and which of them answer",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.status(cmd.Context(), "list the members")
			if err != nil {
				return err
			}
			return a.emit(membersOf(s), func(p *page) { writeMembers(p, s) })
		},
	}
}

func writeMembers(p *page, s control.Status) {
	if c := s.Cluster; !c.Reachable {
		p.line("%s", word{"etcd does not answer: " + cmp.Or(c.Error, "no cause is known"), bad})
		if c.AgeSeconds != nil {
			p.line("the list is %s old, and nobody can tell now who answers", display.Age(c.AgeSeconds))
		}
	}
	t := table{head: []string{"MEMBER", "ID", "ROLE", "ETCD", "ANSWERS", "HOST", "QUORUMD"}}
	if p.wide {
		t.head = append(t.head, "LAG", "DB", "PEER URLS", "CLIENT URLS")
	}
	for _, m := range membersOf(s).Members {
		row := []word{
			{Text: cmp.Or(m.Name, "(never started)")},
			{Text: m.ID},
			memberRole(m.Member),
			{Text: m.Version},
			answers(s, m.Member),
			{Text: m.Host},
			{Text: m.Quorumd},
		}
		if m.Host == "" {
			row[6] = word{"no agent", warn}
		}
		if p.wide {
			row = append(row, cells(display.Lag(m.Member), display.Database(m.Member), strings.Join(m.PeerURLs, ","),
				strings.Join(m.ClientURLs, ","))...)
		}
		t.add(row...)
	}
	if len(t.rows) == 0 {
		p.line("there is no member in view")
	}
	p.table(t)
}

func memberRole(m control.Member) word {
	w := word{Text: string(m.Role)}
	if m.Leader {
		w.Text += ", leader"
	}
	return w
}

// answers says whether a member answers, or for how long it has not, as far as this host has seen.
func answers(s control.Status, m control.Member) word {
	switch {
	case !s.Cluster.Reachable:
		return word{"not known", plain}
	case m.Live:
		return word{"yes", good}
	case m.DownSeconds == nil:
		return word{"no", bad}
	}
	return word{"not for " + display.Age(m.DownSeconds), bad}
}
