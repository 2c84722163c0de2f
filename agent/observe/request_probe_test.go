// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/systemd"
)

// threeVoters returns the members of a cluster in which this host's member is 1.
func threeVoters() cluster.Membership {
	list := cluster.Membership{ClusterID: 7}
	for i, name := range []string{"n1", "n2", "n3"} {
		list.Members = append(list.Members, cluster.Member{
			ID: uint64(i) + 1, Name: name, PeerURLs: []string{"http://" + name + ":2380"},
			ClientURLs: []string{"http://" + name + ":2379"},
		})
	}
	return list
}

// applied returns the statuses of three voters with the given applied indexes. Only the second and the third voter have
// answered a linearizable read.
func applied(first, second, third uint64) map[uint64]cluster.Status {
	all := map[uint64]cluster.Status{}
	for i, n := range []uint64{first, second, third} {
		id := uint64(i) + 1
		all[id] = cluster.Status{MemberID: id, ClusterID: 7, Leader: 1, Applied: n, Linearizable: id != 1}
	}
	return all
}

// changed returns statuses with one of them changed.
func changed(all map[uint64]cluster.Status, id uint64, change func(s *cluster.Status)) map[uint64]cluster.Status {
	s := all[id]
	change(&s)
	all[id] = s
	return all
}

func TestARequestCountsAsHungOnlyIfNothingElseExplainsTheSilence(t *testing.T) {
	t.Parallel()
	const s = time.Second
	late := rpctypes.ErrTimeout
	hung := func(at time.Duration, members map[uint64]cluster.Status) requestResult {
		return requestResult{began: at, read: time.Millisecond, writes: true, took: 3 * s, err: late, members: members}
	}
	twice := func(members map[uint64]cluster.Status) []requestResult {
		return []requestResult{hung(s, members), hung(4*s, members)}
	}
	with := func(id uint64, change func(s *cluster.Status)) []requestResult {
		return []requestResult{hung(s, changed(applied(10, 11, 11), id, change))}
	}
	noRead := func(p requestResult) requestResult { p.read, p.writes = 0, false; return p }
	silent := func(s *cluster.Status) { *s = cluster.Status{Err: errors.New("no answer in time")} }
	for name, c := range map[string]struct {
		probes         []requestResult
		hung, others   int
		absent         string
		neverAnswered  bool
		provenBySystem bool
	}{
		"one hung write": {
			probes: []requestResult{hung(s, applied(10, 11, 11))}, hung: 1, others: 2,
		},
		"two hung writes": {probes: twice(applied(10, 11, 11)), hung: 2, others: 2},
		"a hung read": {
			probes: []requestResult{noRead(hung(s, applied(10, 11, 11)))}, hung: 1, others: 2,
		},
		"the local member returns no status": {
			probes: twice(changed(applied(10, 11, 11), 1, silent)), hung: 2, others: 2,
		},
		"an answer in between": {
			probes: []requestResult{
				hung(s, applied(10, 11, 11)), {began: 4 * s, read: 1, write: 1}, hung(7*s, applied(10, 11, 11)),
			},
			hung: 1, others: 2,
		},
		"the others wait as well": {
			probes: twice(applied(10, 10, 10)), hung: 2, others: 0,
		},
		"another voter is silent": {
			probes: twice(changed(applied(10, 11, 11), 2, silent)), hung: 2, others: 1,
		},
		"another voter has no quorum": {
			probes: with(2, func(s *cluster.Status) { s.Linearizable = false }),
			hung:   1, others: 1,
		},
		"another member answers for a voter": {
			probes: with(2, func(s *cluster.Status) { s.MemberID = 3 }),
			hung:   1, others: 1,
		},
		"a member of another cluster answers": {
			probes: with(2, func(s *cluster.Status) { s.ClusterID = 8 }),
			hung:   1, others: 1,
		},
		"the local member is slow, and applies entries": {
			probes: []requestResult{hung(s, applied(10, 20, 20)), hung(4*s, applied(12, 30, 30))}, hung: 1, others: 2,
		},
		"the local member has no leader": {
			probes: with(1, func(s *cluster.Status) { s.Leader = 0 }),
			absent: "the local member has no leader",
		},
		"the local member's URL leads to a different member": {
			probes: with(1, func(s *cluster.Status) { s.MemberID = 2 }),
			absent: "the member's client URL leads to a different member",
		},
		"the agent was paused": {
			probes: []requestResult{hung(s, applied(10, 11, 11)), func() requestResult {
				p := hung(4*s, applied(10, 11, 11))
				p.took = time.Minute
				return p
			}()},
			absent: "the agent was frozen during a request",
		},
		"a read is denied": {
			probes: []requestResult{noRead(requestResult{began: s, err: rpctypes.ErrPermissionDenied})},
			absent: "etcd refuses a request: etcdserver: permission denied",
		},
		"a write is refused for lack of space": {
			probes: []requestResult{hung(s, applied(10, 11, 11)), {
				began: 4 * s, read: 1, writes: true, err: rpctypes.ErrNoSpace,
			}},
		},
		"a read finds no leader": {
			probes: []requestResult{noRead(requestResult{began: s, err: rpctypes.ErrNoLeader})},
			absent: "etcd refuses a request: etcdserver: no leader",
		},
		"a read that was late": {
			probes: []requestResult{
				noRead(with(1, func(s *cluster.Status) { s.Linearizable = true })[0]),
			},
		},
		"etcd has just started, and installs a snapshot": {
			probes: []requestResult{noRead(hung(s, applied(0, 11, 11)))}, neverAnswered: true,
			absent: "the local member has not answered since etcd was started",
		},
		"etcd has run for a long time, and this agent has just started": {
			probes: []requestResult{noRead(hung(s, applied(10, 11, 11)))}, neverAnswered: true, provenBySystem: true,
			hung: 1, others: 2,
		},
	} {
		q := requests{list: threeVoters(), own: threeVoters().Members[0], answered: !c.neverAnswered}
		for _, p := range c.probes {
			q.take(p, "n1", c.provenBySystem)
		}
		got := q.seen
		if got.Hung != c.hung || got.Others != c.others || got.Known != (c.absent == "") || got.Absent != c.absent ||
			c.hung > 0 && got.Needed != 2 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// sleepy is an etcd that answers requests at once, or never, and counts them.
type sleepy struct {
	cluster.Etcd

	hangs         atomic.Bool
	reads, writes atomic.Int32
}

func (e *sleepy) request(ctx context.Context, count *atomic.Int32) error {
	count.Add(1)
	if e.hangs.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (e *sleepy) ProbeRead(ctx context.Context, _, _ string) error { return e.request(ctx, &e.reads) }

func (e *sleepy) ProbeWrite(ctx context.Context, _, _ string) error { return e.request(ctx, &e.writes) }

func (e *sleepy) Statuses(context.Context, []cluster.Member) map[uint64]cluster.Status {
	return applied(10, 11, 11)
}

func TestOnlyALeaderWritesAndAHungRequestIsRepeatedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, began := &sleepy{}, time.Now()
		now := func() time.Duration { return time.Since(began) + time.Hour }
		j := &judge{now: now, log: slog.New(slog.DiscardHandler), opt: Options{
			Etcd: e, Now: now, Sources: Sources{Requests: e},
			Config: config.Config{
				Host: config.Host{Name: "n1"}, Etcd: config.Etcd{PeerURL: "http://n1:2380"},
				Timing: config.Timing{CallTimeout: 2 * time.Second},
			},
		}}
		r := &round.Round{Unit: systemd.Status{LoadState: "loaded", State: systemd.Active}}
		r.Listed, r.Membership, r.Statuses = true, threeVoters(), applied(10, 10, 10)
		watch := func(span time.Duration, unit policy.UnitState) (seen health.RequestsReading) {
			for range span / time.Second {
				seen = j.requests(t.Context(), r, unit)
				<-time.After(time.Second)
			}
			return seen
		}
		count := func(what string, reads, writes int32) {
			t.Helper()
			if got := e.reads.Swap(0); got != reads {
				t.Errorf("%s: %d reads, want %d", what, got, reads)
			}
			if got := e.writes.Swap(0); got != writes {
				t.Errorf("%s: %d writes, want %d", what, got, writes)
			}
		}
		watch(5*time.Minute, policy.UnitActive)
		count("five minutes of a leader", 30, 30)
		r.Statuses = changed(applied(10, 10, 10), 2, func(s *cluster.Status) { s.Leader, s.Term = 2, 2 })
		watch(5*time.Minute, policy.UnitActive)
		count("five minutes of a follower", 10, 0)
		e.hangs.Store(true)
		r.Statuses = nil
		seen := watch(38*time.Second, policy.UnitActive)
		if seen.Hung < 2 || seen.Others != 2 || seen.For < time.Duration(seen.Hung)*requestTimeout {
			t.Errorf("after 38 s of hanging: %+v", seen)
		}
		e.hangs.Store(false)
		if seen = watch(10*time.Second, policy.UnitActive); seen.Hung != 0 || seen.For != 0 || !seen.Known {
			t.Errorf("after an answer: %+v", seen)
		}
		e.reads.Store(0)
		if seen = watch(time.Minute, policy.UnitInactive); seen.Known || seen.Absent != "etcd does not run here" {
			t.Errorf("without etcd: %+v", seen)
		}
		count("a minute without etcd", 0, 0)
		r.Membership.Members[0].Learner = true
		if seen = watch(time.Minute, policy.UnitActive); seen.Absent != "the local member is a learner" {
			t.Errorf("a learner: %+v", seen)
		}
		r.Membership.Members = r.Membership.Members[1:]
		if seen = watch(time.Minute, policy.UnitActive); seen.Absent != "this host has no member that has started" {
			t.Errorf("without a member: %+v", seen)
		}
		count("no voter", 0, 0)
	})
}
