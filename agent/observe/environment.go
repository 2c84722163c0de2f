// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strings"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// environment returns the environment variables with which the local etcd is started, given the view of a round.
func environment(c config.Config, r *round.Round, v *policy.View) map[string]string {
	switch policy.EnvironmentOf(*v) { //exhaustive:enforce
	case policy.EnvironmentNew:
		return c.Environment(c.SingleMember(), r.Bootstrap.Token)
	case policy.EnvironmentAlone:
		return c.Environment(c.SingleMember(), "")
	case policy.EnvironmentListed:
	}
	return c.Environment(initialCluster(c, r), "")
}

// initialCluster lists all members by peer URL, including this host. etcd compares the URLs and ignores the names of
// other members, but it merges members with equal names. Each other member is therefore named by its ID.
func initialCluster(c config.Config, r *round.Round) string {
	own, _ := r.OwnMember(r.Membership, c.Etcd.PeerURL)
	var parts []string
	for _, m := range r.Membership.Members {
		for _, url := range m.PeerURLs {
			name := record.MemberID(m.ID).String()
			if url == c.Etcd.PeerURL || m.ID == own.ID {
				name = c.Host.Name
			}
			parts = append(parts, name+"="+url)
		}
	}
	return strings.Join(parts, ",")
}
