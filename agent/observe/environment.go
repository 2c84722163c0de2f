// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strings"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// environment gives the variables with which the local etcd starts. members is the present
// member list, this host's own entry included; with token set, a new cluster of this host alone
// is described instead.
func environment(c config.Config, members []cluster.Member, token string) map[string]string {
	if token != "" {
		return c.Environment(c.Alone(), token)
	}
	return c.Environment(initialCluster(c, members), "")
}

// initialCluster lists all members by peer URL. etcd compares the URLs and ignores the names of
// the others, but merges equal ones: each goes by its ID.
func initialCluster(c config.Config, members []cluster.Member) string {
	var parts []string
	for _, m := range members {
		for _, url := range m.PeerURLs {
			name := record.MemberID(m.ID).String()
			if url == c.Etcd.PeerURL {
				name = c.Host.Name
			}
			parts = append(parts, name+"="+url)
		}
	}
	return strings.Join(parts, ",")
}

// wantedEnvironment is what etcd should be started with, as things are: for this host alone when it goes on with a
// snapshot, which goes before all else; for a new cluster when one is asked for and none answers; otherwise for the
// present member list.
func wantedEnvironment(c config.Config, r *round.Round) map[string]string {
	// A snapshot brings the data. Should they be gone one day, etcd must not make a new cluster of nothing.
	if k := r.Recovery; k != nil && k.Snapshot != nil {
		return c.Environment(c.Alone(), "")
	}
	if r.Bootstrap != nil && !r.Reachable {
		return environment(c, nil, r.Bootstrap.Token)
	}
	return environment(c, r.Membership.Members, "")
}
