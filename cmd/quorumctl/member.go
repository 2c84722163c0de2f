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
	return parent(&cobra.Command{
		Use:     "member",
		GroupID: groupOperate,
		Short:   "List etcd's members, or remove or replace one for good",
		Example: examples("quorumctl member list", "quorumctl member remove n3 --reason 'n3 has been scrapped'",
			"quorumctl member replace n2 n5 --reason 'n2 is being decommissioned'"),
	}, a.memberListCommand(), a.memberRemoveCommand(), a.memberReplaceCommand(), a.memberAddCommand(),
		a.memberPromoteCommand())
}

// members is the document that 'quorumctl member list' prints.
type members struct {
	APIVersion string   `json:"apiVersion"`
	Reachable  bool     `json:"reachable"`
	AgeSeconds *float64 `json:"ageSeconds,omitempty"`
	Members    []member `json:"members"`
}

// member is an etcd member with its host.
type member struct {
	control.Member
	// the host whose agent reports this member as its own; absent if no agent does
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
	return a.prints(&cobra.Command{
		Use:     "list",
		Short:   "List etcd's members and whether they answer",
		Example: examples("quorumctl member list", "quorumctl member list -o wide"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return showStatus(cmd.Context(), a, "list the members", membersOf, writeMembers)
		},
	}, printed{name: "members", of: members{}})
}

// memberAddCommand explains why quorumctl does not add members. Operators who know etcdctl look for the command.
func (a *app) memberAddCommand() *cobra.Command {
	return a.prints(&cobra.Command{
		Use:   "add",
		Short: "Not supported: hosts join by themselves",
		Long: "Not supported. A host joins by itself when its health state is OK and the cluster has fewer voters\n" +
			"or standbys than configured: quorumd adds it as a learner, one host at a time, and checks first that\n" +
			"its data directory is empty and that every voter reaches it. To add a host, install quorumd there and\n" +
			"give it the cluster's configuration.",
		Example: examples("quorumctl explain n4", "quorumctl init --hosts "+
			"n1=10.0.0.1,n2=10.0.0.2,n3=10.0.0.3,n4=10.0.0.4"),
		Args: cobra.ArbitraryArgs,
		RunE: func(*cobra.Command, []string) error {
			return usage("quorumctl explain, on the new host, shows what it waits for",
				"cannot add a member: quorumd does this itself when a host is healthy and the cluster needs a member")
		},
	}, printed{instead: "an explanation"})
}

// memberPromoteCommand explains why quorumctl does not promote members.
func (a *app) memberPromoteCommand() *cobra.Command {
	return a.prints(&cobra.Command{
		Use:   "promote",
		Short: "Not supported: learners are promoted by quorumd",
		Long: "Not supported. quorumd promotes a learner by itself when it has stayed caught up for\n" +
			"timing.promoteStable and all voters are healthy. etcd's own check allows the promotion of a learner\n" +
			"that is down, which costs fault tolerance.",
		Example: examples("quorumctl operation show", "quorumctl explain n4"),
		Args:    cobra.ArbitraryArgs,
		RunE: func(*cobra.Command, []string) error {
			return usage("quorumctl operation show, and quorumctl explain on the learner's host",
				"cannot promote a member: quorumd does this itself when the learner has caught up")
		},
	}, printed{instead: "an explanation"})
}

func writeMembers(p *page, s control.Status) {
	if c := s.Cluster; !c.Reachable {
		p.line("%s", word{"etcd does not answer: " + cmp.Or(c.Error, "cause unknown"), bad})
		if c.AgeSeconds != nil {
			p.line("this list is %s old; whether members answer is unknown", display.Age(c.AgeSeconds))
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
		p.line("no members known")
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

// answers describes whether a member answers, and how long it has been down.
func answers(s control.Status, m control.Member) word {
	switch {
	case !s.Cluster.Reachable:
		return word{"unknown", plain}
	case m.Live:
		return word{"yes", good}
	case m.DownSeconds == nil:
		return word{"no", bad}
	}
	return word{"down for " + display.Age(m.DownSeconds), bad}
}
