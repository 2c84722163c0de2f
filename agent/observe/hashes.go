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
// returns it without a delay. The compaction that was the last one when this agent started is not compared, because
// etcds that were started after it would have to read their whole databases.
//
// The hosts of voters compare the data themselves, and so do hosts that may soon decide to replace a voter, because no
// host relies on another host's comparison.
type hashes struct {
	look poll.Poller[hashResult]
	at   time.Duration // when the result that was evaluated last was requested

	begun  bool
	newest int64    // the last compaction, as last read
	due    int64    // the compaction to compare next; 0 if none
	voters []uint64 // the voters that were compared last

	seen    health.HashesReading
	differ  map[uint64]int           // comparisons in a row in which the hash of a voter was different
	differs map[uint64]time.Duration // when the first such comparison was made
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
		*h = hashes{}
		h.look.Forget()
		r.Hashes = health.NotAvailable[health.HashesReading]("this host has no voter")
		r.Hashes.NoVoter = true
		return
	}
	if r.Listed {
		h.compare(ctx, o, r, own)
	}
	r.Hashes, r.Corrupt = h.seen, map[uint64]policy.Corruption{}
	r.Hashes.Host, r.Hashes.NoVoter = o.opt.Config.Host.Name, r.Listed && !votes
	for id, times := range h.differ {
		r.Corrupt[id] = policy.Corruption{
			Times: times, For: max(1, r.At-h.differs[id]), Revision: h.seen.Revision,
		}
	}
}

func (h *hashes) compare(ctx context.Context, o *Observer, r *round.Round, own cluster.Member) {
	now, every := o.opt.Now(), min(hashEvery*o.opt.Config.Timing.Interval, hashLatest)
	if p, _, fresh := h.look.Get(now, maxAge*every); fresh && p.began != h.at {
		h.at = p.began
		h.take(p, own.ID, now)
	}
	voters := slices.DeleteFunc(slices.Clone(r.Membership.Members), func(m cluster.Member) bool { return m.Learner })
	if ids := idsOf(voters); h.voters != nil && !slices.Equal(ids, h.voters) {
		h.keep(ids)
	}
	due := h.due
	if !sameVersion(voters, r.Statuses) {
		due = 0
	}
	h.look.Refresh(ctx, o.opt.Now, every, 2*o.opt.Config.Timing.CallTimeout+lookTimeout,
		func(ctx context.Context) (hashResult, error) {
			p := hashResult{began: now, compared: due, voters: voters}
			if p.newest, p.err = o.opt.Hashes.LastCompaction(ctx); p.err == nil && due != 0 {
				p.answers = o.opt.Hashes.Hashes(ctx, voters, due)
			}
			return p, ctx.Err()
		})
}

// keep drops the results for members that are no longer voters. The remaining voters are compared again.
func (h *hashes) keep(voters []uint64) {
	h.voters, h.due = voters, max(h.due, h.seen.Revision)
	maps.DeleteFunc(h.differ, func(id uint64, _ int) bool { return !slices.Contains(voters, id) })
}

// take evaluates a result.
func (h *hashes) take(p hashResult, own uint64, now time.Duration) {
	absent := ""
	switch {
	case p.err != nil:
		absent = "the last compaction cannot be read"
	case p.newest == 0:
		absent = "etcd has never compacted its history"
	case !h.begun:
		absent = "etcd has not compacted its history since quorumd started"
	}
	if p.err == nil {
		if h.begun && p.newest > h.newest {
			h.due = p.newest
		}
		h.begun, h.newest = true, p.newest
	}
	if p.err == nil && p.compared != 0 {
		if h.due == p.compared {
			h.due = 0
		}
		absent = h.takeHashes(p, own, now)
	}
	if !h.seen.Known && absent != "" {
		h.seen.Absent = absent
	}
}

// takeHashes evaluates a comparison. It returns why there is no result, or "".
func (h *hashes) takeHashes(p hashResult, own uint64, now time.Duration) (absent string) {
	var all []health.VoterHash
	byName := map[string]uint64{}
	for _, m := range p.voters {
		a := p.answers[m.ID]
		v := health.VoterHash{Name: cmp.Or(m.Name, fmt.Sprintf("%x", m.ID)), Sum: a.Sum, Compacted: a.Compacted}
		if a.Err != nil {
			v.Absent = a.Err.Error()
		}
		all, byName[v.Name] = append(all, v), m.ID
	}
	result, absent := health.CompareHashes(all, policy.Quorum(len(all)))
	if absent != "" {
		return absent
	}
	before := h.seen
	h.voters = idsOf(p.voters)
	h.seen = health.HashesReading{
		Known: true, Revision: p.compared, Voters: len(all), HashComparison: result,
		InRow: before.InRow, Agreed: before.Agreed,
	}
	differ := map[uint64]int{}
	for _, name := range result.Differ {
		id := byName[name]
		if differ[id] = h.differ[id] + 1; differ[id] == 1 {
			h.started(id, now)
		}
	}
	h.differ = differ
	later := p.compared > before.Revision
	switch h.seen.Own = differ[own] > 0; {
	case h.seen.Own && (later || !before.Own):
		h.seen.InRow, h.seen.Agreed = before.InRow+1, 0
	case !h.seen.Own && !result.Divided && (later || before.Own):
		h.seen.InRow, h.seen.Agreed = 0, before.Agreed+1
	}
	for _, times := range differ {
		if times < health.HashProofs {
			h.due = max(h.due, p.compared) // compare once more
		}
	}
	return ""
}

func (h *hashes) started(id uint64, now time.Duration) {
	if h.differs == nil {
		h.differs = map[uint64]time.Duration{}
	}
	h.differs[id] = now
}

// sameVersion reports whether all voters that answer run the same version of etcd. Different versions may hash
// differently.
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

func idsOf(members []cluster.Member) []uint64 {
	ids := make([]uint64, 0, len(members))
	for _, m := range members {
		ids = append(ids, m.ID)
	}
	slices.Sort(ids)
	return ids
}
