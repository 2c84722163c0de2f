// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/agent/observe"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// fleetWithReplacement returns a round with what each agent observes in a cluster of five: the member list, the
// members' answers, and the hosts' records. n4 is dead, n5 was dead and has been removed, and n6 joins to replace n5.
func fleetWithReplacement(t *testing.T, number uint64, at time.Duration, joining *reachability) *round.Round {
	t.Helper()
	r := roundWith(at)
	r.Number = number
	r.ClusterState = round.ClusterState{
		EtcdAt: at, StatusesAt: at, HostsAt: at, Reachable: true, Listed: true, Statuses: map[uint64]cluster.Status{},
	}
	r.Membership.ClusterID = 7
	for _, id := range []uint64{1, 2, 3, 4, 6} {
		url, name := fmt.Sprintf("http://p%d", id), fmt.Sprintf("n%d", id)
		m := cluster.Member{ID: id, Name: name, PeerURLs: []string{url}, Learner: id == 6}
		r.Membership.Members = append(r.Membership.Members, m)
		if id == 4 {
			continue
		}
		observed := roundWith(at, reaches(2), loses(4, time.Second))
		role, sees := policy.RoleVoter, &reachability{}
		if id == 6 {
			role, sees = policy.RoleJoining, joining
		}
		observed.Decision.Role = role
		value, err := record.Encode(record.Host{
			ID: "id-" + name, Name: name, PeerURL: url, Role: string(role), Sees: sees.steady(observed),
		})
		if err != nil {
			t.Fatal(err)
		}
		host, err := record.Decode[record.Host](value)
		if err != nil {
			t.Fatal(err)
		}
		r.Hosts = append(r.Hosts, host)
		r.Statuses[id] = cluster.Status{MemberID: id, Leader: 1, Term: 2, Linearizable: true, Learner: id == 6}
	}
	r.Probes = []network.Reading{reaches(1), reaches(2), loses(4, time.Second)}
	return r
}

func TestASecondVoterStaysDeadForAllWhileTheFirstIsReplaced(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"n2", "n6"} {
		var c config.Config
		c.Host.ID, c.Host.Name, c.Timing.HostRecordTTL = "id-"+id, id, time.Minute
		c.Etcd.PeerURL = "http://p" + id[1:]
		b, joining := observe.NewBuilder(c, "boot-1", "i", false), &reachability{}
		var v policy.View
		for i := range 3 {
			v = b.View(fleetWithReplacement(t, uint64(i)+1, time.Minute+time.Duration(i)*10*time.Second, joining), nil)
		}
		dead := policy.DeadVoters(v)
		if len(dead) != 1 || dead[0].Member.ID != 4 || dead[0].For != 20*time.Second {
			t.Errorf("%s observes dead voters %+v; hosts %+v", id, dead, v.Hosts)
		}
	}
}

func TestAJoiningHostCountsALostVoterBeforeItsRecordIsWritten(t *testing.T) {
	t.Parallel()
	var c config.Config
	c.Host.ID, c.Host.Name, c.Etcd.PeerURL, c.Timing.HostRecordTTL = "id-n6", "n6", "http://p6", time.Minute
	b := observe.NewBuilder(c, "boot-1", "i", false)
	r := fleetWithReplacement(t, 1, time.Minute, &reachability{})
	r.Hosts[len(r.Hosts)-1].Sees = []record.Reachability{
		{MemberID: 4, Peer: "answers"},
	} // published before the member was lost
	if dead := policy.DeadVoters(b.View(r, nil)); len(dead) != 1 {
		t.Errorf("the dead voters are %+v", dead)
	}
}
