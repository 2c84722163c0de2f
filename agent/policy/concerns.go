// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// concern is one thing that a host may have to see to.
type concern struct {
	name string
	part func(View) (Decision, bool)
}

// concerns declares what goes before what. Whatever is under way is brought to its end before anything is begun; a dead
// or sick voter is replaced before the cluster grows. A pause, and what holds all like one, comes after what is under
// way on this host only in that it keeps down no etcd that its agent has stopped: see held.
func concerns() []concern {
	return []concern{
		{"a cluster is brought back that had lost its majority", recovery},
		{"a cluster is made", bootstrap},
		{"the listed hosts make a cluster", founding},
		{"this host's operation is in flight", ownOperation},
		{"a leader that is not well gives way", giveWay},
		{"a person has a member removed", removal},
		{"this host is to be taken down", cycle},
		{"another host's operation is in flight", othersOperation},
		{"etcd has made a cluster of its own here", ownDefault},
		{"etcd of this host's member runs", ownUnit},
		{"members may differ", corruption},
		{"etcd has no room", fullDatabase},
		{"what was left over is taken away", leftover},
		{"a standby is lost", letGo},
		{"this host's own member has lost its data", rejoin},
		{"a voter is dead or sick", replace},
		{"the cluster has its size", join},
	}
}
