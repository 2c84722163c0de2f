// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/agent/round"
)

func TestAHostLooksAtAllMembersButItselfAndGoesOnWhenTheListIsNotRead(t *testing.T) {
	t.Parallel()
	prober := network.New(network.Options{Now: func() time.Duration { return time.Hour }})
	o := &Observer{opt: Options{Network: prober, Config: config.Config{Etcd: config.Etcd{PeerURL: "http://n1:2380"}}}}
	list := cluster.Membership{Members: []cluster.Member{
		{ID: 1, Name: "n1", PeerURLs: []string{"http://n1:2380"}},
		{ID: 2, PeerURLs: []string{"http://n2:2380"}}, // it has not started yet
		{ID: 3, Name: "n3", PeerURLs: []string{"http://n3:2380"}, ClientURLs: []string{"http://n3:2379"}},
	}}
	for _, r := range []*round.Round{
		{Seen: round.Seen{Listed: true, Membership: list}},
		{}, // nobody answers
	} {
		o.lookAtNetwork(r)
		if len(r.Sights) != 2 || r.Sights[0].Member != 2 || r.Sights[1].Name != "n3" {
			t.Errorf("it sees %+v", r.Sights)
		}
	}
}
