// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "iter"

// Environment says of which cluster etcd's environment is to tell: what etcd is started with.
type Environment uint8

// The environments. The zero value makes no cluster.
const (
	EnvironmentListed Environment = iota // of the one that lists its members: this host joins it, or belongs to it
	EnvironmentNew                       // of a new one, of this host alone
	EnvironmentAlone                     // of this host alone, and not as a new one: its data are the cluster
)

// EnvironmentOf tells with which environment etcd is to be started as things are. A snapshot that this host goes on
// with goes before all else: it brings the data, and should they be gone one day, etcd must not make a new cluster of
// nothing.
func EnvironmentOf(v View) Environment {
	switch {
	case v.Recovery != nil && v.Recovery.Snapshot:
		return EnvironmentAlone
	case v.Bootstrap.Requested && !v.Cluster.Reachable:
		return EnvironmentNew
	}
	return EnvironmentListed
}

// MakesNewCluster tells whether an etcd that starts now may make a new cluster: no other may answer then, and none did
// when the operator asked.
func MakesNewCluster(v View) bool { return EnvironmentOf(v) == EnvironmentNew && !v.Cluster.Listed }

// AgainstAutomaticBootstrap says why it is not certain that no etcd runs at the other endpoints, or gives nil. others
// gives what a connection meets at one after the other: nil where somebody takes it. Each must refuse: silence proves
// nothing, since a cluster may be behind it, and neither does a list that may lack some; missing says why.
func AgainstAutomaticBootstrap(others iter.Seq2[string, error], missing error, refuses func(error) bool) *Refusal {
	if missing != nil {
		return conflicts(ClusterExists, "endpoints of an existing cluster may be missing: "+missing.Error(),
			"correct cluster.discovery, or wait for its answer; without it cluster.endpoints must name all hosts")
	}
	for endpoint, err := range others {
		switch {
		case err == nil:
			return conflicts(ClusterExists, "something answers at "+endpoint,
				"check whether a cluster runs there without a quorum; correct cluster.endpoints if it is not etcd")
		case !refuses(err):
			return conflicts(ClusterExists, "it is not known whether a cluster runs at "+endpoint+": "+err.Error(),
				"bring that host up, or leave it out of cluster.endpoints until it is")
		}
	}
	return nil
}
