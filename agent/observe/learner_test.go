// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

func TestAPermanentLearnerIsReportedByItsHostOrNotedWhileItIsSilent(t *testing.T) {
	t.Parallel()
	host := func(learner bool, limit int) policy.Host {
		return policy.Host{ID: "n1", PeerURL: "http://p1", Learner: learner, MaxLearners: limit}
	}
	for name, c := range map[string]struct {
		learner   bool // the member is one
		hosts     []policy.Host
		noted     int
		permanent bool
		limit     int
	}{
		"reported":                {true, []policy.Host{host(true, 2)}, 0, true, 2},
		"not any longer":          {true, []policy.Host{host(false, 2)}, 2, false, 2},
		"a new limit":             {true, []policy.Host{host(true, 3)}, 2, true, 3},
		"limit unknown":           {true, []policy.Host{host(true, 0)}, 2, true, 0},
		"silent":                  {true, nil, 2, true, 2},
		"silent, limit unknown":   {true, nil, -1, true, 0},
		"silent, an ordinary one": {true, nil, 0, false, 0},
		"a voter":                 {false, []policy.Host{host(true, 2)}, 0, false, 2},
		"a silent voter":          {false, nil, 2, false, 0},
	} {
		v := policy.View{Cluster: policy.Cluster{
			Members: []policy.Member{{ID: 1, PeerURL: "http://p1", Learner: c.learner}},
		}, Hosts: c.hosts}
		markLearners(&v, map[uint64]int{1: c.noted})
		if m := v.Cluster.Members[0]; m.Permanent != c.permanent || m.MaxLearners != c.limit {
			t.Errorf("%s: %+v", name, m)
		}
	}
	reported := policy.View{
		Cluster: policy.Cluster{Members: []policy.Member{{ID: 1, PeerURL: "http://p1", Learner: true}}},
		Hosts: []policy.Host{
			{ID: "n2", PeerURL: "http://p2", Sees: []record.Reachability{{MemberID: 1}}},
			{ID: "n3", PeerURL: "http://p3", Sees: []record.Reachability{
				{MemberID: 2, Learner: 5}, {MemberID: 1, Learner: 3},
			}},
		},
	}
	markLearners(&reported, nil)
	if m := reported.Cluster.Members[0]; !m.Permanent || m.MaxLearners != 3 {
		t.Errorf("another host reports it: %+v", m)
	}
	v := policy.View{
		Self:    policy.Self{PeerURL: "http://p1", Learner: true},
		Cluster: policy.Cluster{Members: []policy.Member{{ID: 1, PeerURL: "http://p1", Learner: true}}},
	}
	if markLearners(&v, nil); !v.Cluster.Members[0].Permanent {
		t.Error("this host's own learner is not permanent before its record is written")
	}
}
