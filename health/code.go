// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "slices"

// Component is the part of the machine that a finding is about.
type Component string

// The components.
const (
	Disk    Component = "disk"    // the disks with etcd's data
	Machine Component = "machine" // CPU, memory, clock, drives and sensors
	Etcd    Component = "etcd"    // the local member itself
	Network Component = "network" // this host's links, and the network to the members
)

// Code identifies a finding in the CLI, logs, metrics, alerts and the API.
type Code string

// Problem declares the state and the texts of a finding.
type Problem struct {
	Code      Code      `json:"code"`
	Component Component `json:"-"`
	State     State     `json:"state"`            // the health state that this finding alone causes
	Title     string    `json:"title"`            // the condition, in one sentence
	Meaning   string    `json:"meaning"`          // the impact on etcd
	Remedy    string    `json:"remedy,omitempty"` // what the operator should do
}

// Problems returns the problems that quorumd's own checks declare, the worst first.
func Problems() []Problem {
	var all []Problem
	for _, d := range declarations(DefaultThresholds(), newComparison(DefaultThresholds())) {
		all = append(all, d.Problems...)
	}
	slices.SortStableFunc(all, func(a, b Problem) int { return b.State.weight() - a.State.weight() })
	return all
}

// Shared reports whether a common cause can affect several hosts at once, because the problem concerns the disk or the
// network, or is CPU starvation.
func (c Code) Shared() bool {
	p, known := c.Problem()
	return known && (p.Component == Disk || p.Component == Network || c == CPUStarved)
}

// Problem returns the declaration of the code, and false if there is none.
func (c Code) Problem() (Problem, bool) {
	all := Problems()
	i := slices.IndexFunc(all, func(p Problem) bool { return p.Code == c })
	if i < 0 {
		return Problem{}, false
	}
	return all[i], true
}
