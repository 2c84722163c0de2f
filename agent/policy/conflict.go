// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
)

// Conflict returns how this host's identity conflicts with another host's or a member's; empty if it does not. If two
// hosts have the same name or peer URL, neither joins: only an operator can decide which one may. If two agents have
// the same host ID, the one that wrote the host record continues, and the other takes no step.
func Conflict(v View) string {
	if text := wrongName(v); text != "" {
		return text
	}
	for _, h := range v.Hosts {
		switch {
		case h.ID == v.Self.ID && !h.Own:
			return "another agent runs with this host's ID, " + h.ID
		case h.ID == v.Self.ID:
		case h.Name == v.Self.Name:
			return "host " + h.ID + " has the same name, " + h.Name
		case h.PeerURL == v.Self.PeerURL:
			return "host " + h.Name + " has the same peer URL, " + h.PeerURL
		}
	}
	for _, m := range v.Cluster.Members {
		own := v.Data.State == DataMember && v.Data.ClusterID == v.Cluster.ID && v.Data.MemberID == m.ID
		switch {
		case m.PeerURL == v.Self.PeerURL:
		case own:
			return "etcd.peerURL is " + v.Self.PeerURL + ", but this host's member is registered with " + m.PeerURL
		case m.Name == v.Self.Name:
			return "a member with this host's name has another peer URL, " + m.PeerURL
		}
	}
	return ""
}

// wrongName returns why cluster.name must be wrong: hosts in this etcd use other names, and no other member's host uses
// this one. Different names mean different locks, so this host takes no step.
func wrongName(v View) string {
	used := slices.ContainsFunc(v.Cluster.Members, func(m Member) bool {
		h, present := v.hostOf(m)
		return present && h.ID != v.Self.ID
	})
	if len(v.Cluster.OtherNames) == 0 || used {
		return ""
	}
	return "no other member of this etcd uses this host's cluster.name; its hosts use " +
		strings.Join(v.Cluster.OtherNames, " or ")
}
