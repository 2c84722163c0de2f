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

// FoundsCluster tells whether an etcd that starts now may make a new cluster: no other may answer then. It was so when
// the operator asked.
func FoundsCluster(v View) bool { return EnvironmentOf(v) == EnvironmentNew && !v.Cluster.Listed }

// Endpoint is where a member may be, and what a connection meets there.
type Endpoint struct {
	URL     string
	Refuses bool   // connections: nothing listens there
	Error   string // why it is not known who is there; empty where somebody takes the connection
}

// AgainstFounding says why it is not certain that no etcd runs at the other endpoints, or gives nil: each must refuse
// connections. Silence proves nothing, since a cluster may be behind it, and neither does a list that may lack some:
// missing says why.
func AgainstFounding(missing string, others iter.Seq[Endpoint]) *Refusal {
	if missing != "" {
		return conflicts(ClusterExists, "it is not known where a cluster may be: "+missing,
			"correct cluster.discovery, or wait for its answer; without it cluster.endpoints must name all hosts")
	}
	for e := range others {
		switch {
		case e.Refuses:
		case e.Error == "":
			return conflicts(ClusterExists, "something answers at "+e.URL,
				"see whether a cluster runs there without a quorum; correct cluster.endpoints if it is not etcd")
		default:
			return conflicts(ClusterExists, "it is not known whether a cluster runs at "+e.URL+": "+e.Error,
				"bring that host up, or leave it out of cluster.endpoints until it is")
		}
	}
	return nil
}
