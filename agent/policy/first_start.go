// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// FirstStart is what the start guard, as root, reads when systemd is about to start etcd's unit, whether or not an
// agent runs.
type FirstStart struct {
	// Manages reports that a valid configuration of an agent names this unit and has mode: manage.
	Manages bool
	// AgentStarts reports that the agent's unit runs, or that a boot starts it: that agent decides.
	AgentStarts bool
	// Decided reports that quorumd has written the unit's environment: it has begun a cluster or a join here.
	Decided bool
	// NoMember reports that none of the directories that etcd may use holds a member, and that each of them was
	// readable and is on a mounted file system. It is false if that is unknown.
	NoMember bool
}

// StartGuarded reports whether etcd must not start yet. On an empty disk, without an environment, it would create a
// single-member cluster on localhost. If anything is unknown it may start: an etcd with data never depends on quorumd
// (P4, P6).
func (f FirstStart) StartGuarded() bool {
	return f.Manages && f.AgentStarts && !f.Decided && f.NoMember
}
