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
		learner   bool // the member is a learner
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

func TestHostsThatDisagreeAboutAMemberLeaveItUnknown(t *testing.T) {
	t.Parallel()
	host := func(learner bool, limit int, files policy.PeerTLS) policy.Host {
		return policy.Host{PeerURL: "http://p1", Learner: learner, MaxLearners: limit, PeerTLS: files}
	}
	old := host(false, 1, policy.PeerTLSReady)
	for name, c := range map[string]struct {
		hosts     []policy.Host
		permanent bool
		limit     int
		files     policy.PeerTLS
	}{
		"the hosts agree": {[]policy.Host{old, old}, false, 1, policy.PeerTLSReady},
		"they disagree about the role": {
			[]policy.Host{old, host(true, 1, policy.PeerTLSReady)}, true, 1, policy.PeerTLSReady,
		},
		"they disagree about the role, in the other order": {
			[]policy.Host{host(true, 1, policy.PeerTLSReady), old}, true, 1, policy.PeerTLSReady,
		},
		"they disagree about the limit": {
			[]policy.Host{old, host(false, 2, policy.PeerTLSReady)}, false, 0, policy.PeerTLSReady,
		},
		"they disagree about the certificate": {
			[]policy.Host{old, host(false, 1, policy.PeerTLSNone)}, false, 1, "",
		},
		"one of three hosts disagrees": {
			[]policy.Host{old, host(false, 2, policy.PeerTLSNone), old}, false, 0, "",
		},
		"a host reports no limit": {[]policy.Host{host(false, 0, ""), old}, false, 0, ""},
		"the other report is about a different member": {
			[]policy.Host{old, {PeerURL: "http://p2"}}, false, 1, policy.PeerTLSReady,
		},
	} {
		v := policy.View{Cluster: policy.Cluster{
			Members: []policy.Member{{ID: 1, PeerURL: "http://p1", Learner: true}},
		}, Hosts: c.hosts}
		markLearners(&v, nil)
		if m := v.Cluster.Members[0]; m.Permanent != c.permanent || m.MaxLearners != c.limit || m.PeerTLS != c.files {
			t.Errorf("%s: %+v", name, m)
		}
	}
}
