// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Successor is what tells whether the cluster that answers was recovered without this host.
type Successor struct {
	Old, New uint64 // the cluster says that New goes on in the place of Old; 0 where it says nothing
	Answers  uint64 // the cluster; 0 when none does
	Noted    uint64 // the one that this host belongs to by its disk; 0 for none
	Pinned   bool   // its configuration says which cluster it wants
	Planned  bool   // a plan is in force here
}

// Late tells whether it was: the cluster says of itself that it goes on in the place of the one that this host knows. A
// host with a plan obeys that, and where the configuration names a cluster people have to change it.
func (s Successor) Late() bool {
	return !s.Planned && !s.Pinned && s.Answers != 0 && s.Answers == s.New && s.Noted != 0 && s.Noted == s.Old
}
