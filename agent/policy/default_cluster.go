// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
)

// An etcd that starts on an empty disk without an environment creates a single-member cluster. Its member and cluster
// IDs are the same on every host, because etcd derives them from the default peer URL and the default token.
const (
	defaultMemberID  = 0x8e9e05c52164694d
	defaultClusterID = 0xcdf818194e3a8c32
	defaultPeerURL   = "http://localhost:2380"
)

// hasDefaultData reports whether data belongs to such a cluster, or to one that has grown from it: a member keeps its
// ID when its peer URL changes.
func hasDefaultData(member, cluster uint64) bool {
	return member == defaultMemberID && cluster == defaultClusterID
}

// strayDefault reports whether etcd has created a cluster of its own here that no configured URL leads to. It ignores a
// cluster that quorumd knows as this host's, and one whose etcd lists the member at another peer URL.
func strayDefault(v View) (string, bool) {
	if v.Data.State != DataMember || !hasDefaultData(v.Data.MemberID, v.Data.ClusterID) ||
		v.Self.PeerURL == defaultPeerURL {
		return "", false
	}
	if m, listed := v.memberByID(defaultMemberID); v.Cluster.ID == defaultClusterID && listed {
		if m.PeerURL != defaultPeerURL {
			return "", false
		}
	} else if v.Cluster.ExpectedID == defaultClusterID {
		return "", false
	}
	return fmt.Sprintf("etcd was started here without settings and created a single-member cluster: member %x, peer "+
		"URL %s",
		uint64(defaultMemberID), defaultPeerURL), true
}

// ownDefault keeps such a cluster from being taken for this host's: nothing is started, joined or brought back.
func ownDefaultCluster(v View) (Decision, bool) {
	text, stray := strayDefault(v)
	if !stray {
		return Decision{}, false
	}
	return wait(DefaultCluster, "%s", text), true
}

// strayRemains finds hosts whose data belongs to such clusters. They are no copies of each other, although their
// members have the same ID.
func strayRemains(all []HostRemains, _ RecoveryChoice) (text, about string) {
	var strays []string
	unlisted := 0
	for _, r := range all {
		if r.Empty || !hasDefaultData(r.MemberID, r.ClusterID) || r.PeerURL == defaultPeerURL {
			continue
		}
		lists := slices.Concat(r.InData, r.LastSeen)
		switch at := slices.IndexFunc(lists, r.hasDataOf); {
		case at < 0 && len(r.InData) > 0, at >= 0 && lists[at].PeerURL != defaultPeerURL:
			continue
		case at < 0:
			unlisted++
		}
		strays = append(strays, r.Host)
	}
	if len(strays) == 0 || len(strays) == 1 && unlisted == 1 { // a single one does not prove what it is
		return "", ""
	}
	return fmt.Sprintf("on %s etcd was started without settings and created a single-member cluster (member %x, %s), "+
		"which contains no data of cluster %q", strings.Join(strays, " and "), uint64(defaultMemberID), defaultPeerURL,
		all[0].Cluster), strings.Join(strays, ", ")
}
