// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package display

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

// Section is a named part of the status.
type Section struct {
	Name  string
	Lines []Line
}

// Cluster returns the lines about the cluster: its voters, fault tolerance, standbys and etcd version, and why etcd
// does not answer.
func Cluster(c control.Cluster) []Line {
	lines := []Line{lineOf("%s · %s · %s%s%s", Styled{c.Name, Strong}, Voters(c), Tolerance(c), Standbys(c),
		After(" · etcd ", c.Version))}
	if c.ID == "" {
		lines = []Line{lineOf("%s · no cluster in view", Styled{c.Name, Strong})}
	}
	if c.DomainLoss != "" {
		lines = append(lines, lineOf("%s", Styled{c.DomainLoss, Warn}))
	}
	if c.Reachable || c.ID == "" && c.Error == "" {
		return lines
	}
	what := "etcd has no quorum: "
	if Unreachable(c) {
		what = "etcd does not answer: "
	}
	lines = append(lines, lineOf("%s", Styled{what + cmp.Or(c.Error, "no cause is known"), Bad}))
	if c.AgeSeconds != nil && c.ID != "" {
		but := "information"
		if !Unreachable(c) {
			but = "reachability is live; other information"
		}
		lines = append(lines, lineOf("%s about the cluster is %s old", but, Age(c.AgeSeconds)))
	}
	return lines
}

// Summary returns the status as sections, in the order that an operator reads them: health, membership, retired
// hosts, operation, backup. Empty sections are left out.
func Summary(s control.Status) []Section {
	operation := CurrentWork(s)
	if len(operation) == 0 && s.Cluster.Reachable {
		operation = []Line{lineOf("none")}
	}
	return slices.DeleteFunc([]Section{
		{"health", hostHealth(s)},
		{"membership", membership(s)},
		{"retired", retiredHosts(s)},
		{"operation", operation},
		{"backup", Backup(s)},
	}, func(section Section) bool { return len(section.Lines) == 0 })
}

// namesAtMost is how many hosts a line of the summary names. If there are more, the line only counts them.
const namesAtMost = 9

// named lists hosts or members by name, or counts them if there are many.
func named(names []string) string {
	if len(names) > namesAtMost {
		return fmt.Sprintf("%d hosts", len(names))
	}
	return strings.Join(names, ", ")
}

// hostHealth returns one line with the members without an agent, then the hosts grouped by health state, the worst
// state first.
func hostHealth(s control.Status) []Line {
	by := map[string][]string{}
	for _, h := range s.Hosts {
		by[h.Health] = append(by[h.Health], cmp.Or(h.Name, h.ID))
	}
	var line Line
	add := func(names []string, state Styled) {
		if len(names) == 0 {
			return
		}
		slices.Sort(names)
		if len(line) > 0 {
			line = append(line, Styled{Text: " · "})
		}
		line = append(line, Styled{Text: named(names) + ": "}, state)
	}
	var silent []string
	for _, m := range WithoutAgent(s) {
		silent = append(silent, cmp.Or(m.Name, m.ID))
	}
	add(silent, Styled{"no agent", Warn})
	worstFirst := []string{"FAILED", "STALLED", "SLOW", "WARM", "UNKNOWN", "QUALIFYING"}
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(by)), func(state string) bool { // states of a newer quorumd
		return state == "OK" || slices.Contains(worstFirst, state)
	})
	for _, state := range append(worstFirst, others...) {
		add(by[state], HealthState(state))
	}
	if n := len(by["OK"]); n > 0 && len(line) == 0 {
		return []Line{lineOf("%s %s", Count(n, "host", "hosts"), HealthState("OK"))}
	}
	add(by["OK"], HealthState("OK"))
	if len(line) == 0 {
		return nil
	}
	return []Line{line}
}

// permanentLearner is the group of the permanent learners.
const permanentLearner policy.Role = "permanent learner"

// membership returns one line with the members grouped by role. A learner counts under the role that its host publishes
// if a learner can have that role. membership also returns the line from resized, if there is one.
func membership(s control.Status) []Line {
	by, roles := map[policy.Role][]string{}, map[string]policy.Role{}
	for _, h := range s.Hosts {
		roles[h.MemberID] = h.Role
	}
	for _, m := range s.Cluster.Members {
		role := m.Role
		switch by := roles[m.ID]; {
		case role != control.RoleLearner:
		case by == policy.RoleStandby, by == policy.RoleJoining:
			role = by
		case by == policy.RoleLearner:
			role = permanentLearner
		}
		name := cmp.Or(m.Name, m.ID)
		switch {
		case !m.Live:
			name += " (down)"
		case m.Leader:
			name += " (leader)"
		}
		by[role] = append(by[role], name)
	}
	var parts []string
	for _, role := range []struct {
		role      policy.Role
		one, many string
	}{
		{policy.RoleVoter, "voter", "voters"},
		{policy.RoleStandby, "standby", "standbys"},
		{policy.RoleJoining, "joining", "joining"},
		{permanentLearner, "permanent learner", "permanent learners"},
		{control.RoleLearner, "learner", "learners"},
	} {
		names := by[role.role]
		if len(names) == 0 {
			continue
		}
		slices.Sort(names)
		word := role.many
		if len(names) == 1 {
			word = role.one
		}
		parts = append(parts, word+" "+named(names))
	}
	if len(parts) == 0 {
		return nil
	}
	return append([]Line{lineOf("%s", strings.Join(parts, " · "))}, resized(s.Cluster)...)
}

// retiredHosts returns one line with the retired hosts, beginning with those that are still leaving.
func retiredHosts(s control.Status) []Line {
	by := map[string][]string{}
	for _, h := range s.Retired {
		by[h.State] = append(by[h.State], h.Label())
	}
	var parts []string
	for _, state := range []struct{ state, one, many string }{
		{control.RetiredLeaves, "leaves", "leave"},
		{control.RetiredUnreadable, "its record cannot be read", "their records cannot be read"},
		{control.RetiredLeft, "can be switched off", "can be switched off"},
	} {
		if names := by[state.state]; len(names) > 0 {
			slices.Sort(names)
			word := state.many
			if len(names) == 1 {
				word = state.one
			}
			parts = append(parts, named(names)+": "+word)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []Line{lineOf("%s", strings.Join(parts, " · "))}
}

// resized returns a line with the size to which an operator has resized the cluster, unless the cluster has that many
// voters.
func resized(c control.Cluster) []Line {
	if c.Size == nil || c.Size.Voters == c.Voters {
		return nil
	}
	return []Line{lineOf("resized to %s by %s%s", Styled{fmt.Sprint(c.Size.Voters), Warn}, c.Size.By,
		After(": ", c.Size.Reason))}
}
