// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Successor is what shows whether the cluster that answers was recovered without this host.
type Successor struct {
	Old, New uint64 // the cluster reports that New replaced Old; 0 if it reports nothing
	Answers  uint64 // the cluster that answers; 0 if none does
	Noted    uint64 // the cluster that this host belongs to, as recorded on its disk; 0 for none
	Pinned   bool   // its configuration pins the cluster ID
	Planned  bool   // a plan is in force here
}

// Late reports whether this host is late to a recovery: the cluster that answers reports that it replaced this host's
// cluster. A host with a plan follows the plan, and a pinned cluster ID must be changed by operators first.
func (s Successor) Late() bool {
	return !s.Planned && !s.Pinned && s.Answers != 0 && s.Answers == s.New && s.Noted != 0 && s.Noted == s.Old
}
