// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

func TestHealthyPeriodBeginsOnceAnEjectedHostHasReadItsEjection(t *testing.T) {
	t.Parallel()
	c := hostConfig()
	c.Etcd.PeerURL, c.Timing.Interval = "http://p4", 2*time.Second
	b := NewBuilder(c, "boot-1", "i", false)
	wall := time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC)
	once := record.Repairs{}.And(record.Repair{Time: wall.Add(-time.Hour), Member: 9, PeerURL: c.Etcd.PeerURL})
	ahead := once.And(record.Repair{Time: wall.Add(time.Hour), Member: 10, PeerURL: c.Etcd.PeerURL})
	others := record.Repairs{}.And(record.Repair{Time: wall, Member: 9, PeerURL: "http://p5"})
	for i, k := range []struct {
		what    string
		at      time.Duration
		repairs *record.Repairs
		state   health.State
		silent  bool // no voter answers
		want    policy.Ejections
	}{
		{"no ejection", time.Second, nil, health.OK, false, policy.Ejections{}},
		{"another host ejected", 2 * time.Second, &others, health.OK, false, policy.Ejections{}},
		{"ejection read", time.Minute, &once, health.OK, false, policy.Ejections{Times: 1, Ago: time.Hour}},
		{
			"it stays well", 2 * time.Minute, &once, health.Warm, false,
			policy.Ejections{Times: 1, Ago: time.Hour, HealthyFor: time.Minute},
		},
		{"no voter answers for a moment", 2*time.Minute + 3*time.Second, nil, health.OK, true, policy.Ejections{}},
		{
			"the stretch continues", 3 * time.Minute, &once, health.OK, false,
			policy.Ejections{Times: 1, Ago: time.Hour, HealthyFor: 2 * time.Minute},
		},
		{"the disk is slow", 4 * time.Minute, &once, health.Slow, false, policy.Ejections{Times: 1, Ago: time.Hour}},
		{"healthy again", 5 * time.Minute, &once, health.OK, false, policy.Ejections{Times: 1, Ago: time.Hour}},
		{"cut off", 5*time.Minute + time.Second, nil, health.OK, true, policy.Ejections{}},
		{"for long", 8*time.Minute + 30*time.Second, nil, health.OK, true, policy.Ejections{}},
		{"and back", 9 * time.Minute, &once, health.OK, false, policy.Ejections{Times: 1, Ago: time.Hour}},
		{
			"ejected again, by a clock that is ahead", 10 * time.Minute, &ahead, health.OK, false,
			policy.Ejections{Times: 2},
		},
		{
			"the stretch restarted", 11 * time.Minute, &ahead, health.OK, false,
			policy.Ejections{Times: 2, HealthyFor: time.Minute},
		},
		{"repairs record unreadable", 12 * time.Minute, nil, health.OK, false, policy.Ejections{}},
	} {
		r := quiet(uint64(i)+1, k.at)
		r.Wall, r.Repairs, r.Assessment.State = wall, k.repairs, k.state
		if k.state == health.Slow {
			r.Assessment.Gates = health.Joins
		}
		if k.silent {
			r.ClusterState = round.ClusterState{EtcdAt: k.at}
		}
		if k.want.Times > 0 {
			k.want.Member = uint64(8 + k.want.Times)
		}
		if got := b.View(r, nil).Ejections; got != k.want {
			t.Errorf("%s: %+v, want %+v", k.what, got, k.want)
		}
	}
}

func TestHealthyPeriodContinuesAcrossARestartOfTheAgent(t *testing.T) {
	t.Parallel()
	c := hostConfig()
	c.Etcd.PeerURL, c.Timing.Interval = "http://p4", 2*time.Second
	wall := time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC)
	once := record.Repairs{}.And(record.Repair{Time: wall, Member: 9, PeerURL: c.Etcd.PeerURL})
	noted := hoststate.HealthyPeriod{BootID: "boot-1", Member: 9, Began: time.Hour, Seen: 2 * time.Hour}
	for name, k := range map[string]struct {
		member hoststate.ID
		after  time.Duration // how long the host was away
		first  health.State  // the health state in the first of two rounds, a minute before the second
		want   time.Duration
	}{
		"away for a minute":            {9, time.Minute, health.OK, time.Hour + 2*time.Minute},
		"health unknown at first":      {9, time.Minute, health.Unknown, time.Hour + 2*time.Minute},
		"away for longer":              {9, 5 * time.Minute, health.OK, time.Minute},
		"not healthy on return":        {9, time.Minute, health.Slow, 0},
		"another member ejected since": {8, time.Minute, health.OK, time.Minute},
	} {
		b := NewBuilder(c, "boot-1", "i", false)
		var got policy.Ejections
		for i, state := range []health.State{k.first, health.OK} {
			r := quiet(uint64(i)+1, noted.Seen+k.after+time.Duration(i)*time.Minute)
			r.Wall, r.Repairs, r.Assessment.State, r.Noted.HealthyPeriod = wall, &once, state, noted
			if r.Noted.HealthyPeriod.Member = k.member; state == health.Slow {
				r.Assessment.Gates = health.Joins
			}
			got = b.View(r, nil).Ejections
		}
		if got.HealthyFor != k.want {
			t.Errorf("%s: well for %s, want %s", name, got.HealthyFor, k.want)
		}
	}
}
