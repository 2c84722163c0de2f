// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Environment names the environment that etcd starts with.
type Environment uint8

// The environments. The zero value creates no cluster.
const (
	EnvironmentListed Environment = iota // names all members of the cluster that this host joins or belongs to
	EnvironmentNew                       // creates a new cluster of this host alone
	EnvironmentAlone                     // continues the single-member cluster in this host's data
)

// EnvironmentOf returns the environment to start etcd with. A recovery from a snapshot takes precedence: its data
// exists before etcd starts, and if that data is lost later, etcd must not create an empty cluster instead.
func EnvironmentOf(v View) Environment {
	switch {
	case v.Recovery != nil && v.Recovery.Snapshot:
		return EnvironmentAlone
	case v.Bootstrap.Requested && !v.Cluster.Reachable:
		return EnvironmentNew
	}
	return EnvironmentListed
}

// MakesNewCluster reports whether an etcd that starts now creates a new cluster: a bootstrap is requested, and no
// cluster answers.
func MakesNewCluster(v View) bool { return EnvironmentOf(v) == EnvironmentNew && !v.Cluster.Listed }
