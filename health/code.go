// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "slices"

// Component is the part of the machine a problem lies in.
type Component string

// The components.
const (
	Disk    Component = "disk"    // the one that holds the WAL of etcd
	Machine Component = "machine" // processor, memory, clock, drives and sensors
	Etcd    Component = "etcd"    // the local member itself
	Network Component = "network" // between this host and the members
)

// Code is the one word for a problem, the same in the CLI, the log, the metric, the alert and the API.
type Code string

// Problem declares a code.
type Problem struct {
	Code      Code
	Component Component
	State     State  // the verdict that the problem alone calls for
	Title     string // one sentence
	Meaning   string // what it says about the machine and what it does to etcd
	Remedy    string // what the operator does
}

// Problems gives all declarations of all checks, the worst first.
func Problems() []Problem {
	var all []Problem
	for _, d := range declarations(DefaultThresholds()) {
		all = append(all, d.Problems...)
	}
	slices.SortStableFunc(all, func(a, b Problem) int { return b.State.weight() - a.State.weight() })
	return all
}

// Shared reports whether hosts may suffer the problem together, from one cause outside of them: it lies in the disk,
// the processor or the network.
func (c Code) Shared() bool {
	p, known := c.Problem()
	return known && (p.Component == Disk || p.Component == Network || c == CPUStarved)
}

// Problem gives the declaration of the code, and false if there is none.
func (c Code) Problem() (Problem, bool) {
	all := Problems()
	i := slices.IndexFunc(all, func(p Problem) bool { return p.Code == c })
	if i < 0 {
		return Problem{}, false
	}
	return all[i], true
}
