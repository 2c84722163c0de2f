// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// counted returns the metrics of an etcd that has counted a number of fast fsyncs, and a number of slow fsyncs of up to
// 256 ms.
func counted(at time.Duration, quick, slow uint64) health.EtcdReading {
	return health.EtcdReading{At: at, WALFsync: health.Histogram{
		Known: true, Bounds: []float64{0.001, 0.128, 0.256}, Counts: []uint64{quick, 0, slow, 0},
	}}
}

func TestEtcdFsyncsAreSlowIfMoreThanOneInAHundredWasRecently(t *testing.T) {
	t.Parallel()
	const limit, slow = 100 * time.Millisecond, 256 * time.Millisecond
	type look struct {
		seen health.EtcdReading
		want time.Duration
	}
	s := time.Second
	for name, looks := range map[string][]look{
		"slow fsyncs before the first reading": {{counted(s, 0, 900), 0}, {counted(31*s, 0, 919), 0}},
		"twenty slow fsyncs are enough":        {{counted(s, 0, 900), 0}, {counted(31*s, 0, 920), slow}},
		"more than half of few fsyncs":         {{counted(s, 0, 0), 0}, {counted(31*s, 9, 11), slow}},
		"half of few fsyncs":                   {{counted(s, 0, 0), 0}, {counted(31*s, 10, 10), 0}},
		"a hundred slow fsyncs are enough":     {{counted(s, 0, 900), 0}, {counted(31*s, 0, 1000), slow}},
		"the same reading again": {
			{counted(s, 0, 0), 0},
			{counted(31*s, 0, 100), slow},
			{counted(31*s, 0, 100), slow},
		},
		"two in a hundred": {{counted(s, 0, 0), 0}, {counted(31*s, 98, 2), slow}},
		"fewer":            {{counted(s, 0, 0), 0}, {counted(31*s, 99, 1), 0}},
		"the bucket contains the limit": {
			{health.EtcdReading{At: s, WALFsync: health.Histogram{
				Known: true, Bounds: []float64{0.064, 0.128}, Counts: []uint64{0, 0, 0},
			}}, 0},
			{health.EtcdReading{At: 31 * s, WALFsync: health.Histogram{
				Known: true, Bounds: []float64{0.064, 0.128}, Counts: []uint64{0, 900, 0},
			}}, 0},
		},
		"five minutes later": {
			{counted(s, 0, 0), 0},
			{counted(31*s, 0, 100), slow},
			{counted(61*s, 500, 100), slow},
			{counted(301*s, 900, 100), slow},
			{counted(332*s, 901, 100), 0},
		},
		"etcd restarted": {
			{counted(s, 0, 0), 0},
			{counted(31*s, 0, 140), slow},
			{counted(61*s, 130, 0), 0},
			{counted(91*s, 130, 100), slow},
		},
		"etcd reports nothing": {
			{counted(s, 0, 0), 0},
			{counted(31*s, 0, 100), slow},
			{health.EtcdReading{At: 61 * s}, 0},
		},
	} {
		var own health.Recent
		for i, l := range looks {
			if got := slowSyncs(&own, l.seen, limit); got != l.want {
				t.Errorf("%s, look %d: %s, want %s", name, i+1, got, l.want)
			}
		}
	}
}

// TestTheFsyncsOfAnotherMemberAreNoEvidence checks a voter that advertises http://localhost:2379, etcd's default. At
// that URL, the deciding host reaches its own etcd.
func TestTheFsyncsOfAnotherMemberAreNoEvidence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers uint64
		known   bool
	}{"the voter itself": {0xa3, true}, "an etcd that names no member": {0, true}, "another member": {0xa1, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				o := &Observer{pace: pace{attends: true}}
				o.opt.Now = func() time.Duration { return time.Since(began) + time.Hour }
				o.opt.Config.Disk.FsyncSlow = 100 * time.Millisecond
				o.opt.MemberMetrics = func(context.Context, string) health.EtcdReading {
					seen := counted(0, 100, 1)
					seen.Member = c.answers
					return seen
				}
				r := &round.Round{}
				r.Reachable = true
				r.Hosts = []record.Host{{ID: "n3", PeerURL: "http://n3:2380", Health: health.Slow.String()}}
				r.Membership.Members = []cluster.Member{{
					ID: 0xa3, PeerURLs: []string{"http://n3:2380"}, ClientURLs: []string{"http://localhost:2379"},
				}}
				o.lookAtFsyncs(t.Context(), r)
				synctest.Wait()
				o.lookAtFsyncs(t.Context(), r)
				if got := r.Fsyncs[0xa3]; got.Known != c.known ||
					!c.known && !strings.Contains(got.Absent, "leads to member a1") {
					t.Errorf("known: %+v", got)
				}
			})
		})
	}
}
