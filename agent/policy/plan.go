// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorumd/quorumd/health"
)

// Every planned change has a plan, which a dry run shows. The functions that later decide also make the plan, so it
// lists the steps that they take if nothing fails.

// PlanChange is what a plan step changes about a member.
type PlanChange string

// The changes. A step with another effect, such as the end of an operation, has none of them.
const (
	PlanJoins     PlanChange = "joins"     // a host becomes a voter
	PlanLeaves    PlanChange = "leaves"    // a host's member is removed
	PlanTransfers PlanChange = "transfers" // leadership is transferred away from a host
	PlanUpdates   PlanChange = "updates"   // a host's peer URL in the member list changes
	PlanRestarts  PlanChange = "restarts"  // a host's etcd is stopped and started
)

// PlanStep is a step of a planned change.
type PlanStep struct {
	Text   string     `json:"text"`
	Change PlanChange `json:"change,omitempty"` // empty if the step changes no member
	Host   string     `json:"host,omitempty"`   // name of the host whose member changes; empty if it is not known yet
	// name of the voter to which the step transfers leadership; empty if it transfers none, or if that voter is chosen
	// later
	NewLeader string `json:"newLeader,omitempty"`
	Voters    int    `json:"voters"`         // after the step
	Tolerance int    `json:"faultTolerance"` // after the step
	// the step cannot be undone: a removed member does not come back as the same member
	Final    bool   `json:"final"`
	WaitsFor string `json:"waitsFor,omitempty"`
}

// planStep returns a plan step that does not change how many voters are live.
func (v View) planStep(text string) PlanStep {
	voters, live := v.Cluster.Counts()
	return PlanStep{Text: text, Voters: voters, Tolerance: Tolerance(voters, live)}
}

// joins completes a plan step in which a host becomes a voter.
func (s PlanStep) joins(h Host) PlanStep {
	s.Change, s.Host, s.Text = PlanJoins, h.Name, h.Name+" joins as a learner, catches up and becomes a voter"
	if h.Role == RoleStandby {
		s.Text = h.Name + ", the standby, becomes a voter"
	}
	return s
}

// anyJoins completes a plan step in which a host becomes a voter that is not known yet.
func (s PlanStep) anyJoins(waitsFor string) PlanStep {
	s.Change, s.Text = PlanJoins, "another host joins as a learner, catches up and becomes a voter"
	s.WaitsFor = waitsFor
	return s
}

// leave completes a plan step in which the next voter leaves, and returns the view after it.
func (s PlanStep) leave(v View) (PlanStep, View) {
	s.Change, s.Final = PlanLeaves, true
	list := leavers(v)
	if len(list) == 0 {
		s.Text = "a voter leaves as soon as its host is in mode manage and in no operation"
		return s, v
	}
	first := list[0]
	s.Host = first.Name
	text := first.Name + " leaves: proxies stop using it, its member is removed, etcd is stopped and its data is " +
		"moved aside"
	rest := v
	rest.Cluster.Members = slices.DeleteFunc(slices.Clone(v.Cluster.Members), func(m Member) bool {
		return m.PeerURL == first.PeerURL && !m.Learner
	})
	for _, m := range v.Cluster.Members {
		if m.PeerURL != first.PeerURL || !m.Leader {
			continue
		}
		best, found := bestVoter(v, m.PeerURL)
		if !found {
			text = fmt.Sprintf("once another voter may lead, leadership is transferred from %s to it, then %s",
				first.Name, text)
		} else {
			text = fmt.Sprintf("leadership is transferred from %s to %s, then %s", first.Name, best.label(), text)
			s.NewLeader = best.label()
			for i := range rest.Cluster.Members {
				rest.Cluster.Members[i].Leader = rest.Cluster.Members[i].ID == best.ID
			}
		}
	}
	s.Text = text
	return s, rest
}

// firstDoubt returns why the voters of a view are not all known to be live and healthy; empty if they are.
func (v View) firstDoubt() string {
	var doubts []string
	for m := range v.Cluster.voters() {
		if doubt := v.notProven(m, health.Maintenance); doubt != "" {
			doubts = append(doubts, "voter "+m.label()+" "+doubt)
		}
	}
	return strings.Join(doubts[:min(len(doubts), mostNamed)], ", ")
}
