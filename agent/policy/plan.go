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

// PlanStep is a step of a planned change.
type PlanStep struct {
	Text      string `json:"text"`
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

// joinText describes how a host becomes a voter.
func joinText(h Host) string {
	if h.Role == RoleStandby {
		return h.Name + ", the standby, becomes a voter"
	}
	return h.Name + " joins as a learner, catches up and becomes a voter"
}

// nextLeave returns the text of the next voter's leave, and the view after it.
func nextLeave(v View) (string, View) {
	list := leavers(v)
	if len(list) == 0 {
		return "a voter leaves as soon as its host is in mode manage and in no operation", v
	}
	first := list[0]
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
			for i := range rest.Cluster.Members {
				rest.Cluster.Members[i].Leader = rest.Cluster.Members[i].ID == best.ID
			}
		}
	}
	return text, rest
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
