// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// lastReport is what the last of three live voters reports about the failure domain of two dead voters. The other two
// report "rack".
type lastReport struct {
	domain   string
	bothDead bool // it reports both dead voters, not only the first
}

// withFiveVoters changes the view of a spare from three voters, one of them dead, to five voters, two of them dead. A
// world has too few hosts for five voters and a spare. The result is false if the view cannot be changed so that
// exactly three voters have a host record.
func withFiveVoters(v *policy.View, last lastReport) bool {
	const other, second = 6, 7
	c := &v.Cluster
	dead := slices.IndexFunc(c.Members, func(m policy.Member) bool { return !m.Live && m.AgentGoneFor > 0 })
	host := slices.IndexFunc(v.Hosts, func(h policy.Host) bool { return h.Role == policy.RoleVoter })
	if dead < 0 || host < 0 {
		return false
	}
	h, lost := v.Hosts[host], c.Members[dead]
	well := slices.IndexFunc(c.Members, func(m policy.Member) bool { return m.PeerURL == h.PeerURL && m.Live })
	if well < 0 {
		return false
	}
	more := c.Members[well]
	more.ID, more.Name, more.PeerURL, more.Leader = other, "F", "F", false
	lost.ID, lost.Name, lost.PeerURL = second, "G", "G"
	h.ID, h.Name, h.PeerURL = "F", "F", "F"
	c.Members, v.Hosts, v.Target.Voters = append(c.Members, more, lost), append(v.Hosts, h), 5
	eachMember(v, func(m *policy.Member) {
		if m.Live {
			m.Domain = "hall"
		}
	})
	voters := 0
	for i := range v.Hosts {
		if h := &v.Hosts[i]; h.Role == policy.RoleVoter {
			report := lastReport{"rack", true}
			if voters++; voters == 3 {
				report = last
			}
			h.Sees = slices.Clone(h.Sees)
			for j := range h.Sees {
				h.Sees[j].Domain = report.domain
			}
			if report.bothDead {
				h.Sees = append(h.Sees, record.Reachability{
					MemberID: second, LostSince: lostOn, Link: record.LinkNone, For: ages, Domain: report.domain,
				})
			}
		}
	}
	return voters == 3
}

// The spare has never observed the failure domains of the dead voters itself.
func TestDomainOfTwoDeadVotersCountsOnlyIfAllAgree(t *testing.T) {
	t.Parallel()
	sc := smallReplacements()[0]
	x := newExplorer(sc, rules{}, 1)
	if r := x.run(t.Context()); !r.Complete {
		t.Fatal(r)
	}
	decided := 0
	for s := range maps.Keys(x.workers[0].cache) {
		if s.hosts[s.self].list != unlisted || s.reachable == 0 {
			continue
		}
		decide := func(last lastReport) policy.StepKind {
			v := s.view(sc.Target, byNumber)
			v.Limits.DeadGrace, v.Limits.RepairsPerDay = 10*time.Minute, 2
			if !withFiveVoters(&v, last) {
				return "the view cannot be changed to five voters"
			}
			return policy.Decide(v).Step.Kind
		}
		unknown := decide(lastReport{"", true})
		for name, last := range map[string]lastReport{"silent": {"rack", false}, "reporting another": {"shelf", true}} {
			if got := decide(last); got != unknown {
				t.Errorf("one voter's host is %s: the step is %q, not %q\n%s", name, got, unknown, s.text())
			}
		}
		if decide(lastReport{"rack", true}) != unknown {
			decided++
		}
	}
	if decided == 0 {
		t.Error("the reports of all voters never change a decision")
	}
}
