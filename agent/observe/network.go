// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"

	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/agent/round"
)

// lookAtNetwork has all other members looked at, beside the loop, and takes in what was seen last.
func (o *Observer) lookAtNetwork(r *round.Round) {
	if o.opt.Network == nil {
		return
	}
	r.SightEvery = network.Pace(!o.pace.attends, o.pace.size)
	if r.Listed {
		var others []network.Member
		for _, m := range r.Membership.Members {
			if slices.Contains(m.PeerURLs, o.opt.Config.Etcd.PeerURL) {
				continue
			}
			others = append(others, network.Member{
				ID: m.ID, Name: m.Name, Peer: first(m.PeerURLs), Client: first(m.ClientURLs),
			})
		}
		o.opt.Network.Watch(others, r.SightEvery)
	}
	r.Sights = o.opt.Network.Sights()
}

func first(urls []string) string {
	if len(urls) == 0 {
		return ""
	}
	return urls[0]
}
