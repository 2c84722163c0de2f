// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/poll"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// hashEvery is the interval at which the last compaction is read, in intervals of the loop, and maxHashEvery its
// maximum. A compaction is compared one interval after it was first read: until then, members may still be completing
// it.
const (
	hashEvery    = 30
	maxHashEvery = time.Minute
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

	own    uint64 // this host's voter; 0 if none
	seen   health.HashesReading
	counts map[uint64]hashCount // by voter
}

// hashCount counts a voter's comparisons in a row, each at a later compaction.
type hashCount struct {
	differed, agreed int
	since            time.Duration // when the first of those in which it differed was made
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
		h.own = 0
		if votes {
			h.own = own.ID
		}
		h.compare(ctx, o, r)
	}
	r.Hashes, r.Corrupt = h.seen, map[uint64]policy.Corruption{}
	r.Hashes.Host, r.Hashes.NoVoter = o.opt.Config.Host.Name, r.Listed && !votes
	r.Hashes.InRow, r.Hashes.Agreed = h.counts[h.own].differed, h.counts[h.own].agreed
	for id, c := range h.counts {
		if c.differed > 0 {
			since := max(1, r.At-c.since)
			r.Corrupt[id] = policy.Corruption{Times: c.differed, For: since, Revision: h.seen.Revision}
		}
	}
}

func (h *hashes) compare(ctx context.Context, o *Observer, r *round.Round) {
	now, every := o.opt.Now(), min(hashEvery*o.opt.Config.Timing.Interval, maxHashEvery)
	if p, _, fresh := h.look.Get(now, maxAge*every); fresh && p.began != h.at {
		h.at = p.began
		h.take(p, now)
	}
	voters := slices.DeleteFunc(slices.Clone(r.Membership.Members), func(m cluster.Member) bool { return m.Learner })
	h.keep(voters, now)
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

// keep drops the hashes of voters that have left. A voter that leaves disproves nothing, so a result about the others
// remains valid. But if no majority had the same data, a majority of the remaining voters may have it. A voter that was
// added changes nothing until the next compaction: it would have to read its whole database for the last one.
func (h *comparison) keep(voters []cluster.Member, now time.Duration) {
	left := func(id uint64) bool {
		return !slices.ContainsFunc(voters, func(m cluster.Member) bool { return m.ID == id })
	}
	before := len(h.last)
	h.last = slices.DeleteFunc(slices.Clone(h.last), func(v health.VoterHash) bool { return left(v.ID) })
	if len(h.last) == before {
		return
	}
	maps.DeleteFunc(h.counts, func(id uint64, _ hashCount) bool { return left(id) })
	result, absent := health.CompareHashes(h.last, policy.Quorum(len(voters)))
	switch {
	case len(h.last) < 2, h.seen.Divided && absent != "":
		h.seen, h.counts, h.last = health.NotAvailable[health.HashesReading](absent), nil, nil
	case h.seen.Divided:
		h.record(result, len(h.last), h.seen.Revision, now)
	default:
		h.nameDiffering()
	}
}

// nameDiffering derives the list of differing voters from the counts.
func (h *comparison) nameDiffering() {
	h.seen.Differ, h.seen.DifferID = nil, nil
	for _, v := range h.last {
		if h.counts[v.ID].differed > 0 {
			h.seen.Differ, h.seen.DifferID = append(h.seen.Differ, v.Name), append(h.seen.DifferID, v.ID)
		}
	}
}

// take evaluates a result.
func (h *comparison) take(p hashResult, now time.Duration) {
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
		h.unavailable(h.takeHashes(p, now))
	}
}

// takeHashes evaluates a comparison. It returns why there is no result.
func (h *comparison) takeHashes(p hashResult, now time.Duration) (absent string) {
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
	proven := slices.ContainsFunc(all, func(v health.VoterHash) bool { return h.counts[v.ID].differed > 0 })
	if absent != "" || result.Divided && !complete && proven { // a missing hash disproves nothing
		return absent
	}
	h.last = all
	h.record(result, len(all), p.compared, now)
	return ""
}

// record replaces the result, and counts it for each voter with a hash to compare. The others keep their counts: a
// missing hash disproves nothing.
func (h *comparison) record(result health.HashComparison, voters int, revision int64, now time.Duration) {
	later, before := revision > h.seen.Revision, h.counts
	h.seen = health.HashesReading{Known: true, Revision: revision, Voters: voters, HashComparison: result}
	h.counts = map[uint64]hashCount{}
	for _, v := range h.last {
		c := before[v.ID]
		switch compared, differs := slices.Contains(result.ComparedID, v.ID), slices.Contains(result.DifferID, v.ID); {
		case !compared:
		case differs && c.differed == 0:
			c = hashCount{differed: 1, since: now}
		case differs && later:
			c.differed++
		case !differs && result.Divided:
			c.differed = 0
		case !differs && later:
			c = hashCount{agreed: c.agreed + 1}
		}
		h.counts[v.ID] = c
	}
	h.nameDiffering()
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
