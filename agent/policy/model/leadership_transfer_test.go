// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// ring is a cluster of voters in which only the leadership changes.
type ring struct {
	states []health.State
	leader int
	gave   []policy.LeadershipTransfers
}

func newRing(states []health.State, leader int) *ring {
	r := &ring{states: states, leader: leader, gave: make([]policy.LeadershipTransfers, len(states))}
	for i := range r.gave {
		r.gave[i] = policy.LeadershipTransfers{LeadsFor: ages, UnfitFor: ages, LastFor: ages}
	}
	return r
}

// look is one round of the leader's agent. It returns the voter that becomes the leader, if it transfers leadership.
func (r *ring) look() (to int, transfers bool) {
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
		Lock:    policy.Lock{Known: true}, HostsFresh: true, LeadershipTransfers: r.gave[r.leader],
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
	g := &r.gave[r.leader]
	g.InRow, g.LastFor = g.NextInRow(v.Limits), 0
	return int(d.Step.MemberID) - 1, true
}

// pass lets time pass.
func (r *ring) pass(d time.Duration) {
	for i := range r.gave {
		r.gave[i].LastFor += d
		r.gave[i].LeadsFor += d
	}
}

func TestOneLeadershipTransferIsEnoughWhateverTheHealthStates(t *testing.T) {
	t.Parallel()
	all := []health.State{health.OK, health.Warm, health.Slow, health.Stalled, health.Failed, health.Unknown}
	const voters = 4
	moved := 0
	for n := range len(all) * len(all) * len(all) * len(all) * voters {
		leader, rest := n%voters, n/voters
		var states []health.State
		for range voters {
			states = append(states, all[rest%len(all)])
			rest /= len(all)
		}
		r := newRing(states, leader)
		to, gives := r.look()
		if !gives {
			continue
		}
		moved++
		if was := states[leader]; states[to] != health.OK || was == health.OK || was == health.Unknown {
			t.Fatalf("%v: %s transfers leadership to %s", states, hostName(leader), hostName(to))
		}
		r.leader = to
		if again, gives := r.look(); gives {
			t.Fatalf(
				"%v: %s transfers leadership to %s, which transfers it to %s",
				states,
				hostName(leader),
				hostName(to),
				hostName(again),
			)
		}
	}
	if moved == 0 {
		t.Error("no leader has transferred leadership: this test proves nothing")
	}
}

// If leading itself makes a disk slow, no health state ends the cycle of transfers. Their growing intervals limit it.
func TestLeadershipThatSlowsItsLeaderRotatesLessAndLessOften(t *testing.T) {
	t.Parallel()
	const voters, day, step = 3, 24 * time.Hour, 10 * time.Second
	for name, refuses := range map[string]bool{"leadership moves": false, "etcd refuses": true} {
		r := newRing(make([]health.State, voters), 0)
		perHour := map[time.Duration]int{}
		for at := time.Duration(0); at < day; at += step {
			for i := range r.states {
				r.states[i] = health.OK
			}
			r.states[r.leader] = health.Slow
			if to, gives := r.look(); gives {
				perHour[at/time.Hour]++
				if !refuses {
					r.leader = to
					r.gave[to].LeadsFor = 0
				}
			}
			r.pass(step)
		}
		// a host begins with intervals of 1, 1, 2, 4, 8, 16 and 32 minutes, and then transfers leadership twice an hour
		if first, last := perHour[0], perHour[23]; first == 0 || first > 7*voters || last == 0 || last > 2*voters {
			t.Errorf("%s: %d transfers in the first hour, %d in the last", name, first, last)
		}
	}
}
