// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "iter"

// Environment is the kind of environment that etcd starts with.
type Environment uint8

// The environments. The zero value creates no cluster.
const (
	EnvironmentListed Environment = iota // for the listed cluster: this host joins it, or belongs to it
	EnvironmentNew                       // for a new cluster of this host alone
	EnvironmentAlone                     // for an existing cluster of this host alone: its data is the cluster
)

// EnvironmentOf returns the environment to start etcd with. A snapshot to restore comes first: it brings the data, and
// if that data is lost later, etcd must not create an empty cluster instead.
func EnvironmentOf(v View) Environment {
	switch {
	case v.Recovery != nil && v.Recovery.Snapshot:
		return EnvironmentAlone
	case v.Bootstrap.Requested && !v.Cluster.Reachable:
		return EnvironmentNew
	}
	return EnvironmentListed
}

// MakesNewCluster reports whether an etcd that starts now creates a new cluster: an operator requested one, and no
// cluster answers.
func MakesNewCluster(v View) bool { return EnvironmentOf(v) == EnvironmentNew && !v.Cluster.Listed }

// AgainstAutomaticBootstrap returns why an etcd may run at another endpoint, or nil if none does. others yields the
// result of connecting to each: nil if the connection is accepted. Each must refuse the connection, because a silent
// endpoint may hide a cluster. missing is why the list of endpoints may be incomplete, or nil.
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
