// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
)

// queueView returns the view of n1, one of three voters, with that many spares.
func queueView(spares int) View {
	v := spareView()
	v.Self.ID, v.Self.Name, v.Self.PeerURL = "n1", "n1", peerPrefix+"n1"
	v.Cluster.Fresh, v.HostsFresh = true, true
	v.Unit.State, v.Data.State, v.Data.MemberID = UnitActive, DataMember, 1
	v.Cluster.Members = append(v.Cluster.Members, voter(3, "n3"))
	v.Hosts[2].Role = RoleVoter
	for i := range spares {
		v.Hosts = append(v.Hosts, ready(fmt.Sprintf("s%02d", i), RoleSpare))
	}
	return v
}

func TestTheFirstPresentVoterKeepsTheQueue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		when   string
		change func(v *View)
		want   bool
	}{
		{"it is the first", func(*View) {}, true},
		{"it is the second", func(v *View) { v.Self.ID, v.Self.PeerURL = "n2", peerPrefix+"n2" }, false},
		{"the first is not present", func(v *View) {
			v.Self.ID, v.Self.PeerURL, v.Hosts = "n2", peerPrefix+"n2", v.Hosts[1:]
		}, true},
		{"a host before it is a spare", func(v *View) {
			v.Hosts = slices.Insert(v.Hosts, 0, ready("a", RoleSpare))
		}, true},
		{"another host claims its name", func(v *View) { v.Self.Conflict = "n9" }, false},
		{"the member list has it as a learner", func(v *View) { v.Cluster.Members[0].Learner = true }, false},
		{"no host is present", func(v *View) { v.Hosts = nil }, false},
		{"the hosts were not read in this round", func(v *View) { v.HostsFresh = false }, false},
		{"the endpoints belong to a different cluster", func(v *View) { v.Cluster.ExpectedID = 0xbad }, false},
		{"no voter answers", func(v *View) { v.Cluster = Cluster{Error: "refused"} }, false},
	} {
		v := queueView(1)
		c.change(&v)
		if got := Decide(v).Notes.Queue; got.Keeps != c.want || !c.want && !reflect.DeepEqual(got, QueueNote{}) {
			t.Errorf("%s: %+v, want %t", c.when, got, c.want)
		}
	}
}

func TestTheQueueIsWrittenOnlyWhenItChanges(t *testing.T) {
	t.Parallel()
	first := Decide(queueView(5)).Notes.Queue
	if !first.News || first.Queue.Hosts != 8 || !slices.Equal(first.Queue.Next, []string{"s00", "s01", "s02"}) ||
		len(first.Queue.Down) != 0 {
		t.Fatalf("the first: %+v", first)
	}
	down := func(v *View) { v.Hosts[3].Wants = WorkRestart }
	rolling := func(v *View) { v.Rollout = &Rollout{ID: "r", Runs: true, Waiting: []string{"n2", "s04"}} }
	for _, c := range []struct {
		when   string
		change func(v *View)
		news   bool
		want   func(q *Queue)
	}{
		{"nothing has changed", func(*View) {}, false, func(*Queue) {}},
		{"a host has gone", func(v *View) { v.Hosts = v.Hosts[:7] }, false, func(*Queue) {}},
		{"one host has come", func(v *View) {
			*v = queueView(6)
			v.Queue = &first.Queue
		}, true, func(q *Queue) { q.Hosts = 16 }},
		{"three of four hosts have gone", func(v *View) { v.Queue.Hosts = 32 }, true, func(*Queue) {}},
		{"fewer hosts have gone", func(v *View) { v.Queue.Hosts = 16 }, false, func(q *Queue) { q.Hosts = 16 }},
		{"a spare in the queue is no longer ready", func(v *View) {
			v.Hosts[3].Waiting = HealthBad
		}, true, func(q *Queue) { q.Next = []string{"s01", "s02", "s03"} }},
		{"a spare in the queue is no longer ready, and a voter does not answer", func(v *View) {
			v.Hosts[3].Waiting, v.Cluster.Members[1].Live = HealthBad, false
		}, false, func(*Queue) {}},
		{"a spare has a request", down, true, func(q *Queue) { q.Down = []string{"s00"} }},
		{"a rollout runs", rolling, true, func(q *Queue) { q.Down = []string{"s04"} }},
		{"the rollout is paused", func(v *View) { rolling(v); v.Rollout.Runs = false }, false, func(*Queue) {}},
	} {
		v, old := queueView(5), first.Queue
		v.Queue = &old
		c.change(&v)
		want := first.Queue
		c.want(&want)
		got := Decide(v).Notes.Queue
		if !got.Keeps || got.News != c.news || got.Queue.Hosts != want.Hosts ||
			!slices.Equal(got.Queue.Next, want.Next) || !slices.Equal(got.Queue.Down, want.Down) {
			t.Errorf("%s: %+v, want %+v, news %t", c.when, got, want, c.news)
		}
	}
}
