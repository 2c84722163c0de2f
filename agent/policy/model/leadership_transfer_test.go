// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// leadershipRing is a cluster of voters in which only the leader and the health states change.
type leadershipRing struct {
	states    []health.State
	leader    int
	transfers []policy.LeadershipTransfers
}

func newLeadershipRing(states []health.State, leader int) *leadershipRing {
	r := &leadershipRing{states: states, leader: leader, transfers: make([]policy.LeadershipTransfers, len(states))}
	for i := range r.transfers {
		r.transfers[i] = policy.LeadershipTransfers{LeadsFor: ages, UnfitFor: ages, LastFor: ages}
	}
	return r
}

// round simulates one round of the leader's agent, and returns the voter to which it transfers leadership, if any.
func (r *leadershipRing) round() (to int, transfers bool) {
	me := hostName(r.leader)
	v := policy.View{
		Self:   policy.Self{ID: me, Name: me, PeerURL: me, Mode: policy.Manage, Drives: true, Etcd: etcdVersion()},
		Target: policy.Target{Voters: len(r.states)}, Limits: limits(), IdleFor: ages,
		Unit: policy.Unit{State: policy.UnitActive, Since: ages, Ran: true},
		Data: policy.Data{State: policy.DataMember, ClusterID: clusterID, MemberID: memberID(r.leader)},
		Health: policy.Health{
			State: r.states[r.leader], Qualified: true, SlowWrites: r.states[r.leader] <= health.Slow, Writes: slowMean,
		},
		Cluster: policy.Cluster{Reachable: true, Listed: true, Fresh: true, ID: clusterID, StableFor: ages},
		Lock:    policy.Lock{Known: true}, HostsFresh: true, LeadershipTransfers: r.transfers[r.leader],
	}
	v.Self.MemberID = memberID(r.leader)
	for i, state := range r.states {
		name := hostName(i)
		v.Cluster.Members = append(v.Cluster.Members, policy.Member{
			ID: memberID(i), Name: name, PeerURL: name, Live: true, Leader: i == r.leader, LiveFor: ages,
			Version: etcdVersion(), LagKnown: true, SteadyFor: ages,
		})
		v.Hosts = append(v.Hosts, policy.Host{
			ID: name, Name: name, PeerURL: name, Role: policy.RoleVoter, Health: state, Qualified: true, Manage: true,
			Writes: policy.Writes{Mean: quickMean},
		})
	}
	d := policy.Decide(v)
	if d.Step.Kind != policy.StepLeaderStepsDown {
		return 0, false
	}
	g := &r.transfers[r.leader]
	g.InRow, g.LastFor = g.NextInRow(v.Limits), 0
	return int(d.Step.MemberID) - 1, true
}

// pass advances the time.
func (r *leadershipRing) pass(d time.Duration) {
	for i := range r.transfers {
		r.transfers[i].LastFor += d
		r.transfers[i].LeadsFor += d
	}
}

func TestOneLeadershipTransferIsEnoughWhateverTheHealthStates(t *testing.T) {
	t.Parallel()
	all := []health.State{health.OK, health.Warm, health.Slow, health.Stalled, health.Failed, health.Unknown}
	const voters = 4
	count := 0
	for n := range len(all) * len(all) * len(all) * len(all) * voters {
		leader, rest := n%voters, n/voters
		var states []health.State
		for range voters {
			states = append(states, all[rest%len(all)])
			rest /= len(all)
		}
		r := newLeadershipRing(states, leader)
		to, transfers := r.round()
		if !transfers {
			continue
		}
		count++
		if was := states[leader]; states[to] != health.OK || was == health.OK || was == health.Unknown {
			t.Fatalf("%v: %s transfers leadership to %s", states, hostName(leader), hostName(to))
		}
		r.leader = to
		if again, transfers := r.round(); transfers {
			t.Fatalf("%v: %s transfers leadership to %s, which transfers it to %s", states, hostName(leader),
				hostName(to), hostName(again))
		}
	}
	if count == 0 {
		t.Error("no leader transferred leadership: the test proves nothing")
	}
}

// If leading itself makes a disk slow, no health state ends the cycle of transfers. Their growing intervals limit it.
func TestLeadershipThatSlowsItsLeaderRotatesEverMoreRarely(t *testing.T) {
	t.Parallel()
	const voters, day, step = 3, 24 * time.Hour, 10 * time.Second
	for name, refuses := range map[string]bool{"leadership moves": false, "etcd refuses": true} {
		r := newLeadershipRing(make([]health.State, voters), 0)
		perHour := map[time.Duration]int{}
		for at := time.Duration(0); at < day; at += step {
			for i := range r.states {
				r.states[i] = health.OK
			}
			r.states[r.leader] = health.Slow
			if to, transfers := r.round(); transfers {
				perHour[at/time.Hour]++
				if !refuses {
					r.leader = to
					r.transfers[to].LeadsFor = 0
				}
			}
			r.pass(step)
		}
		// The intervals of a host are 1, 1, 2, 4, 8, 16 and 32 minutes. After that, it transfers leadership about twice
		// an hour.
		if first, last := perHour[0], perHour[23]; first == 0 || first > 7*voters || last == 0 || last > 2*voters {
			t.Errorf("%s: %d transfers in the first hour, %d in the last", name, first, last)
		}
	}
}
