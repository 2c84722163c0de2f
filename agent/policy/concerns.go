// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// concern is one thing that a host may have to handle.
type concern struct {
	name string
	part func(View) (Decision, bool)
}

// concerns declares the priorities. Whatever is in progress is finished before anything begins; a dead or unhealthy
// voter is replaced before the cluster grows. A pause, and what works like one, comes after what is in progress on this
// host only in that it keeps down no etcd that its agent has stopped: see held.
func concerns() []concern {
	return []concern{
		{"recovery from quorum loss", recovery},
		{"bootstrap on request", bootstrap},
		{"automatic bootstrap", automaticBootstrap},
		{"this host's operation", ownOperation},
		{"leadership transfer from an unhealthy leader", stepDown},
		{"requested member removal", removal},
		{"this host's request", cycle},
		{"another host's operation", othersOperation},
		{"single-member cluster made by default", ownDefaultCluster},
		{"etcd of this host's member", ownUnit},
		{"CORRUPT alarm", corruption},
		{"NOSPACE alarm", fullDatabase},
		{"leftover learners", leftover},
		{"lost standby", removeLostStandby},
		{"this host's member without data", rejoin},
		{"replacement of a dead or unhealthy voter", replace},
		{"join", join},
	}
}
