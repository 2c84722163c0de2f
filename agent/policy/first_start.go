// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// FirstStart is what root can read when systemd is about to start etcd's unit, whether or not an agent runs.
type FirstStart struct {
	// Manages reports that a valid configuration of an agent names this unit and has mode: manage.
	Manages bool
	// AgentStarts reports that the agent's unit runs, or is started by a boot: it will decide.
	AgentStarts bool
	// Decided reports that quorumd has written the unit's environment: it has begun a cluster or a join here.
	Decided bool
	// NoMember reports that none of the directories that etcd may use holds a member, and that each of them could be
	// looked at and is on a mounted file system. It is false when that is not known.
	NoMember bool
}

// StartGuarded reports whether etcd must not start yet. On an empty disk, without an environment, it would make a
// cluster of one on localhost. Whatever is not known lets it start: an etcd that has data never depends on quorumd (P4,
// P6).
func (f FirstStart) StartGuarded() bool {
	return f.Manages && f.AgentStarts && !f.Decided && f.NoMember
}
