// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"strconv"
	"testing"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// withoutLeader returns a round in which n2 to n5 answer, but have no leader. This host is n1, and does not run etcd.
func withoutLeader(own string) *round.Round {
	r := &round.Round{Number: 1}
	r.Answers.Of = map[uint64]cluster.Status{}
	for id := uint64(1); id <= 5; id++ {
		name := "n" + strconv.FormatUint(id, 10)
		m := cluster.Member{ID: id, Name: name, PeerURLs: []string{"http://" + name}}
		s := cluster.Status{MemberID: id, ClusterID: 7}
		if id == 1 {
			m.PeerURLs[0], s = own, cluster.Status{Err: context.DeadlineExceeded}
		}
		r.Answers.Membership.Members = append(r.Answers.Membership.Members, m)
		r.Answers.Of[id] = s
	}
	return r
}

func TestVotersWithoutALeaderAreEvidenceOnlyIfNoQuorumIsPossible(t *testing.T) {
	t.Parallel()
	c := hostConfig()
	for name, change := range map[string]func(r *round.Round){
		"four answer":         func(*round.Round) {},
		"only two answer":     func(r *round.Round) { silence(r, 4, 5) },
		"! only one answers":  func(r *round.Round) { silence(r, 3, 4, 5) },
		"! none answers":      func(r *round.Round) { silence(r, 2, 3, 4, 5) },
		"! one has a leader":  func(r *round.Round) { changeAnswer(r, 3, func(s *cluster.Status) { s.Leader = 4 }) },
		"! etcd is reachable": func(r *round.Round) { r.Reachable = true },
		"! this host is a learner": func(r *round.Round) {
			r.Answers.Membership.Members[0].Learner = true
		},
		"! this host is no member": func(r *round.Round) {
			r.Answers.Membership.Members[0].PeerURLs = []string{"http://n9"}
		},
		"! they are of a different cluster": func(r *round.Round) {
			for id := range r.Answers.Of {
				changeAnswer(r, id, func(s *cluster.Status) { s.ClusterID = 8 })
			}
		},
		"! different members answer there": func(r *round.Round) {
			for id := range r.Answers.Of {
				changeAnswer(r, id, func(s *cluster.Status) { s.MemberID += 10 })
			}
		},
	} {
		r := withoutLeader(c.Etcd.PeerURL)
		change(r)
		v := policy.View{Cluster: policy.Cluster{ExpectedID: 7}}
		NewBuilder(c, "boot-1", "i", false).leaderless(&v, r)
		if want := name[0] != '!'; (v.Cluster.Leaderless != "") != want {
			t.Errorf("%s: %q", name, v.Cluster.Leaderless)
		}
	}
}

func silence(r *round.Round, ids ...uint64) {
	for _, id := range ids {
		r.Answers.Of[id] = cluster.Status{Err: context.DeadlineExceeded}
	}
}

func changeAnswer(r *round.Round, id uint64, change func(s *cluster.Status)) {
	s := r.Answers.Of[id]
	change(&s)
	r.Answers.Of[id] = s
}
