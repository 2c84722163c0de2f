// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

// counted is what an etcd tells at a moment that has counted so many quick syncs and so many of up to 256 ms.
func counted(at time.Duration, quick, slow uint64) health.EtcdReading {
	return health.EtcdReading{At: at, WALFsync: health.Histogram{
		Known: true, Bounds: []float64{0.001, 0.128, 0.256}, Counts: []uint64{quick, 0, slow, 0},
	}}
}

func TestEtcdsOwnSyncsAreSlowWhenMoreThanOneInAHundredOfTheLastMinutesWas(t *testing.T) {
	t.Parallel()
	const limit, slow = 100 * time.Millisecond, 256 * time.Millisecond
	type look struct {
		told health.EtcdReading
		want time.Duration
	}
	s := time.Second
	for name, looks := range map[string][]look{
		"it has counted from when nobody looked": {{counted(s, 0, 900), 0}, {counted(31*s, 0, 999), 0}},
		"a hundred slow ones say something":      {{counted(s, 0, 900), 0}, {counted(31*s, 0, 1000), slow}},
		"the same look says the same": {
			{counted(s, 0, 0), 0},
			{counted(31*s, 0, 100), slow},
			{counted(31*s, 0, 100), slow},
		},
		"two in a hundred": {{counted(s, 0, 0), 0}, {counted(31*s, 98, 2), slow}},
		"fewer":            {{counted(s, 0, 0), 0}, {counted(31*s, 99, 1), 0}},
		"those that may have been quicker than the limit": {
			{health.EtcdReading{At: s, WALFsync: health.Histogram{
				Known: true, Bounds: []float64{0.064, 0.128}, Counts: []uint64{0, 0, 0},
			}}, 0},
			{health.EtcdReading{At: 31 * s, WALFsync: health.Histogram{
				Known: true, Bounds: []float64{0.064, 0.128}, Counts: []uint64{0, 900, 0},
			}}, 0},
		},
		"it is over five minutes later": {
			{counted(s, 0, 0), 0},
			{counted(31*s, 0, 100), slow},
			{counted(61*s, 500, 100), slow},
			{counted(301*s, 900, 100), slow},
			{counted(332*s, 901, 100), 0},
		},
		"etcd was started anew": {
			{counted(s, 0, 0), 0},
			{counted(31*s, 0, 140), slow},
			{counted(61*s, 130, 0), 0},
			{counted(91*s, 130, 100), slow},
		},
		"etcd tells nothing more": {
			{counted(s, 0, 0), 0},
			{counted(31*s, 0, 100), slow},
			{health.EtcdReading{At: 61 * s}, 0},
		},
	} {
		var own syncs
		for i, l := range looks {
			if got := own.slow(l.told, limit); got != l.want {
				t.Errorf("%s, look %d: %s, want %s", name, i+1, got, l.want)
			}
		}
	}
}

func TestWhatSpeaksAgainstAHostCountsFromWhenItWasFirstSeen(t *testing.T) {
	t.Parallel()
	b := NewBuilder(hostConfig(), "boot-1", "i", false)
	for i, c := range []struct {
		at       int // all times are in seconds
		health   string
		syncs    float64
		instance string
		sick     int // -1: it is not
		hangs    int
		slow     int
	}{
		{1, "SLOW", 0, "a", 0, -1, -1},
		{11, "SLOW", 0.256, "a", 10, -1, 0},
		{21, "STALLED", 0.512, "a", 20, 0, 10},
		{31, "FAILED", 0, "a", 30, 10, -1},
		{41, "SLOW", 0, "a", 40, -1, -1},
		{51, "WARM", 0, "a", -1, -1, -1},
		{61, "SLOW", 0, "a", 0, -1, -1},
		{71, "SLOW", 0, "b", 0, -1, -1}, // the word of another agent
		{81, "OF A LATER VERSION", 0, "b", -1, -1, -1},
	} {
		r := quiet(uint64(i)+1, time.Duration(c.at)*time.Second)
		r.Hosts[2] = record.Host{
			ID: "id-n3", Name: "n3", PeerURL: "http://p3", Instance: c.instance, Health: c.health, EtcdFsync: c.syncs,
		}
		got := b.View(r, nil).Hosts[2].Ails
		since := func(s int) time.Duration {
			if s < 0 {
				return 0
			}
			return max(1, time.Duration(s)*time.Second)
		}
		want := policy.Ails{
			For: since(c.sick), HangsFor: since(c.hangs), FsyncFor: since(c.slow),
			Fsync: time.Duration(c.syncs * float64(time.Second)),
		}
		if got != want {
			t.Errorf("after %d s: %+v, want %+v", c.at, got, want)
		}
	}
}
