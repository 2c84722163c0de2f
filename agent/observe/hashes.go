// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/poll"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// hashEvery is the interval at which the last compaction is read, in intervals of the loop, and hashLatest its maximum.
// A compaction is compared one interval after it was first read: until then, members may still be completing it.
const (
	hashEvery  = 30
	hashLatest = time.Minute
)

// Hasher reads what the comparison of the voters' data needs. See [cluster.Client] for the methods.
type Hasher interface {
	LastCompaction(ctx context.Context) (int64, error)
	Hashes(ctx context.Context, members []cluster.Member, revision int64) map[uint64]cluster.Hash
}

// hashes compares the voters' data at each compaction: etcd then computes a hash of all keys and values anyway, and
// returns it without a delay. The compaction that was the newest when this agent started is not compared: an etcd
// that was started after it would have to read its whole database.
//
// The hosts of voters compare the data themselves, and so do hosts that may soon decide to replace a voter, because no
// host relies on another host's comparison.
type hashes struct {
	look poll.Poller[hashResult]
	comparison
}

// comparison is what the results so far have shown. The zero value means that there were none.
type comparison struct {
	at time.Duration // when the result that was evaluated last was requested

	begun  bool
	newest int64 // the last compaction, as last read
	due    int64 // the compaction to compare next; 0 if none
	last   []health.VoterHash

	seen    health.HashesReading
	differ  map[uint64]int           // comparisons in a row, each at a later compaction, in which a voter differed
	differs map[uint64]time.Duration // when the first of them was made
}

// hashResult is one reading of the last compaction and, if one was due, one comparison.
type hashResult struct {
	began    time.Duration
	newest   int64
	err      error
	compared int64 // the compaction at which voters were compared; 0 if none was due
	voters   []cluster.Member
	answers  map[uint64]cluster.Hash
}

// lookAtHashes compares the voters' data in the background, and adds the last result to the round.
func (o *Observer) lookAtHashes(ctx context.Context, r *round.Round) {
	h := &o.hashes
	if o.opt.Hashes == nil {
		return
	}
	own, member := r.OwnMember(r.Membership, o.opt.Config.Etcd.PeerURL)
	votes := member && !own.Learner
	if r.Listed && !votes && !o.pace.attends {
		h.look.Forget()
		h.comparison = comparison{}
		r.Hashes = health.NotAvailable[health.HashesReading]("etcd does not run here")
		r.Hashes.NoVoter = true
		return
	}
	if r.Listed {
		h.compare(ctx, o, r, own)
	}
	r.Hashes, r.Corrupt = h.seen, map[uint64]policy.Corruption{}
	r.Hashes.Host, r.Hashes.NoVoter = o.opt.Config.Host.Name, r.Listed && !votes
	for id, times := range h.differ {
		r.Corrupt[id] = policy.Corruption{Times: times, For: max(1, r.At-h.differs[id]), Revision: h.seen.Revision}
	}
}

func (h *hashes) compare(ctx context.Context, o *Observer, r *round.Round, own cluster.Member) {
	now, every := o.opt.Now(), min(hashEvery*o.opt.Config.Timing.Interval, hashLatest)
	if p, _, fresh := h.look.Get(now, maxAge*every); fresh && p.began != h.at {
		h.at = p.began
		h.take(p, own.ID, now)
	}
	voters := slices.DeleteFunc(slices.Clone(r.Membership.Members), func(m cluster.Member) bool { return m.Learner })
	h.keep(voters)
	if !sameVersion(voters, r.Statuses) {
		h.due = 0
		h.unavailable("the voters run different versions of etcd")
	}
	due := h.due
	h.look.Refresh(ctx, o.opt.Now, every, 2*o.opt.Config.Timing.CallTimeout+lookTimeout,
		func(ctx context.Context) (hashResult, error) {
			p := hashResult{began: now, compared: due, voters: voters}
			if p.newest, p.err = o.opt.Hashes.LastCompaction(ctx); p.err == nil && due != 0 {
				p.answers = o.opt.Hashes.Hashes(ctx, voters, due)
			}
			return p, ctx.Err()
		})
}

// unavailable records why nothing has been compared, unless a result exists.
func (h *comparison) unavailable(why string) {
	if !h.seen.Known {
		h.seen.Absent = why
	}
}

// keep drops the hashes of voters that have left, and evaluates the rest again. A voter that was added changes nothing
// until the next compaction: it would have to read its whole database for the last one.
func (h *comparison) keep(voters []cluster.Member) {
	left := slices.DeleteFunc(slices.Clone(h.last), func(v health.VoterHash) bool {
		return slices.ContainsFunc(voters, func(m cluster.Member) bool { return m.ID == v.ID })
	})
	if len(left) == 0 {
		return
	}
	for _, v := range left {
		delete(h.differ, v.ID)
		h.last = slices.DeleteFunc(h.last, func(o health.VoterHash) bool { return o.ID == v.ID })
	}
	result, absent := health.CompareHashes(h.last, policy.Quorum(len(h.last)))
	if absent != "" {
		h.seen, h.differ, h.last = health.NotAvailable[health.HashesReading](absent), nil, nil
		return
	}
	h.seen.HashComparison, h.seen.Voters = result, len(h.last)
}

// take evaluates a result.
func (h *comparison) take(p hashResult, own uint64, now time.Duration) {
	switch {
	case p.err != nil:
		h.unavailable("the last compaction cannot be read")
		return
	case p.newest == 0:
		h.unavailable("etcd has never compacted its history")
	case !h.begun:
		h.unavailable("etcd has not compacted its history since quorumd started")
	}
	if h.begun && p.newest > h.newest {
		h.due = p.newest
	}
	h.begun, h.newest = true, max(h.newest, p.newest)
	if p.compared != 0 {
		if h.due == p.compared {
			h.due = 0
		}
		h.unavailable(h.takeHashes(p, own, now))
	}
}

// takeHashes evaluates a comparison. It returns why there is no result.
func (h *comparison) takeHashes(p hashResult, own uint64, now time.Duration) (absent string) {
	var all []health.VoterHash
	complete := true
	for _, m := range p.voters {
		a := p.answers[m.ID]
		v := health.VoterHash{
			ID: m.ID, Name: cmp.Or(m.Name, fmt.Sprintf("%x", m.ID)), Sum: a.Sum, Compacted: a.Compacted,
		}
		if a.Err != nil {
			v.Absent, complete = a.Err.Error(), false
		}
		complete = complete && (len(all) == 0 || v.Compacted == all[0].Compacted)
		all = append(all, v)
	}
	result, absent := health.CompareHashes(all, policy.Quorum(len(all)))
	if absent != "" || result.Divided && !complete && len(h.differ) > 0 { // a missing hash disproves nothing
		return absent
	}
	before := h.seen
	later := p.compared > before.Revision
	h.last = all
	h.seen = health.HashesReading{
		Known: true, Revision: p.compared, Voters: len(all), HashComparison: result,
		InRow: before.InRow, Agreed: before.Agreed, Own: slices.Contains(result.DifferID, own),
	}
	h.count(result, later, now)
	switch compared := slices.Contains(result.ComparedID, own); {
	case !compared:
		h.seen.Own = before.Own
	case h.seen.Own && later:
		h.seen.InRow, h.seen.Agreed = before.InRow+1, 0
	case !h.seen.Own && !result.Divided && later:
		h.seen.InRow, h.seen.Agreed = 0, before.Agreed+1
	}
	return ""
}

// count counts the comparisons in a row in which voters differed. A voter without a hash to compare keeps its count: a
// missing hash disproves nothing.
func (h *comparison) count(result health.HashComparison, later bool, now time.Duration) {
	before := h.differ
	h.differ = map[uint64]int{}
	for _, v := range h.last {
		switch compared, differs := slices.Contains(result.ComparedID, v.ID), slices.Contains(result.DifferID, v.ID); {
		case before[v.ID] > 0 && !compared:
			h.differ[v.ID] = before[v.ID]
			h.seen.Differ = append(h.seen.Differ, v.Name)
		case differs && (later || before[v.ID] == 0):
			h.differ[v.ID] = before[v.ID] + 1
		case differs:
			h.differ[v.ID] = before[v.ID]
		}
		if h.differ[v.ID] == 1 && before[v.ID] == 0 {
			if h.differs == nil {
				h.differs = map[uint64]time.Duration{}
			}
			h.differs[v.ID] = now
		}
	}
}

// sameVersion reports whether all voters that answer run the same version of etcd. Different versions may compute
// different hashes.
func sameVersion(voters []cluster.Member, statuses map[uint64]cluster.Status) bool {
	version := ""
	for _, m := range voters {
		s, answered := answer(statuses, m.ID)
		if !answered {
			continue
		}
		if version == "" {
			version = s.Version
		}
		if s.Version != version {
			return false
		}
	}
	return true
}
