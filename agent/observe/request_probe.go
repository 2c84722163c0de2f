// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/poll"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// Intervals of the requests to the local member. After an unanswered request, the next one follows immediately.
const (
	requestsLeading   = 10 * time.Second
	requestsFollowing = 30 * time.Second
	// requestTimeout is longer than an election and than any answer of a member that is merely slow.
	requestTimeout = 3 * time.Second
	// requestLate is how much later than its timeout a request may end. If it ends even later, the agent was paused,
	// and the answer may have arrived in the meantime.
	requestLate = time.Second
	// requestsProven is how long etcd must have run before its silence counts although it has not answered since its
	// start. Until then, it may be installing a snapshot.
	requestsProven = 10 * time.Minute
)

// Requester makes requests through the member at a client URL, each within its context: a linearizable read of a key,
// and a write that changes nothing.
type Requester interface {
	ProbeRead(ctx context.Context, url, key string) error
	ProbeWrite(ctx context.Context, url, key string) error
}

// requests times requests to the local member in the background. It uses the probe's clock.
type requests struct {
	look poll.Poller[requestResult]
	list cluster.Membership // as last read
	own  cluster.Member     // this host's member in list

	at       time.Duration // when the result that was evaluated last was requested
	answered bool          // the running etcd has answered
	hung     int           // requests in a row without an answer
	since    time.Duration // when the first unanswered request was sent
	applied  uint64        // the local member's applied index, as first known after since; 0 if unknown
	seen     health.RequestsReading
}

// requestResult is one probe: a linearizable read and, if the member leads and has answered, a write.
type requestResult struct {
	began, read, write time.Duration // read and write are durations; 0 without an answer
	writes             bool          // the last request is the write
	took               time.Duration // duration of the last request
	err                error         // of the last request
	// members are the statuses of all members. They are requested only if the last request was not answered.
	members map[uint64]cluster.Status
}

// requests returns how this host's member answers requests, and makes the next ones when they are due.
func (j *judge) requests(ctx context.Context, r *round.Round, unit policy.UnitState) health.RequestsReading {
	q := &j.asks
	if j.opt.Requests == nil {
		return health.RequestsReading{}
	}
	if r.Listed {
		q.list = r.Membership
		q.own, _ = r.OwnMember(r.Membership, j.opt.Config.Etcd.PeerURL)
	}
	if why := q.unavailable(unit); why != "" {
		q.forget()
		return health.NotAvailable[health.RequestsReading](why)
	}
	if seen, _, fresh := q.look.Get(j.opt.Now(), maxAge*requestsFollowing); fresh && seen.began != q.at {
		q.take(seen, j.opt.Config.Host.Name, unit == policy.UnitActive && r.Unit.Since >= requestsProven)
	}
	leads := leaderOf(r.Statuses) == q.own.ID
	every := requestsFollowing
	switch {
	case q.hung > 0:
		every = 0
	case leads:
		every = requestsLeading
	}
	url, key := q.own.ClientURLs[0], record.KeysFor(j.opt.Config.Cluster.Name).Request()
	members := q.list.Members
	bound := 2 * (requestTimeout + j.opt.Config.Timing.CallTimeout)
	q.look.Refresh(ctx, j.opt.Now, every, bound, func(ctx context.Context) (requestResult, error) {
		return j.request(ctx, url, key, leads, members), ctx.Err()
	})
	out := q.seen
	if q.hung > 0 {
		out.For = j.now() - q.since
	}
	return out
}

// unavailable returns why no requests are made; empty if they are.
func (q *requests) unavailable(unit policy.UnitState) string {
	switch {
	case unit != policy.UnitActive && unit != policy.UnitUnknown:
		return "etcd does not run here"
	case q.own.ID == 0, len(q.own.ClientURLs) == 0:
		return "this host has no member that has started"
	case q.own.Learner:
		return "the local member is a learner"
	}
	return ""
}

func (q *requests) forget() {
	q.look.Forget()
	q.answered, q.hung, q.seen = false, 0, health.RequestsReading{}
}

// request makes the requests of one probe. If the member does not answer, request asks all members for their statuses.
func (j *judge) request(ctx context.Context, url, key string, leads bool, members []cluster.Member) requestResult {
	p := requestResult{began: j.now()}
	timed := func(call func(ctx context.Context, url, key string) error) time.Duration {
		began := j.now()
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		p.err = call(ctx, url, key)
		p.took = j.now() - began
		if p.err != nil {
			return 0
		}
		return max(1, p.took)
	}
	if p.read = timed(j.opt.Requests.ProbeRead); p.err == nil && leads {
		p.writes = true
		p.write = timed(j.opt.Requests.ProbeWrite)
	}
	if cluster.Unanswered(p.err) {
		p.members = j.opt.Etcd.Statuses(ctx, members)
	}
	return p
}

// take evaluates a probe. If proven is set, silence counts even if the running etcd has never answered.
func (q *requests) take(p requestResult, host string, proven bool) {
	q.at = p.began
	self := p.members[q.own.ID]
	out := health.RequestsReading{Host: host, Read: q.seen.Read, Write: q.seen.Write, Writes: p.writes}
	if p.read > 0 {
		out.Known, out.Read, q.answered = true, known(p.read.Seconds()), true
	}
	if p.write > 0 {
		out.Write = known(p.write.Seconds())
	}
	switch {
	case p.err == nil && !p.writes:
		out.Write = health.Figure{} // the member does not lead
	case p.err == nil:
	case !cluster.Unanswered(p.err):
		if why := "etcd refuses a request: " + p.err.Error(); p.writes {
			out.Write = health.Figure{Absent: why}
		} else {
			out.Absent = why
		}
	case p.took > requestTimeout+requestLate:
		out.Known, out.Absent = false, "the agent was frozen during a request"
	case self.Err == nil && self.MemberID != q.own.ID:
		out.Known, out.Absent = false, "the member's client URL leads to a different member"
	case self.Err == nil && self.Leader == 0:
		out.Known, out.Absent = false, "the local member has no leader"
	case self.Err == nil && self.Linearizable && !p.writes:
		out.Known = true // the member has answered in the meantime
	case !q.answered && !proven:
		out.Known, out.Absent = false, "the local member has not answered since etcd was started"
	default:
		out.Known = true
		out.Hung, out.Others, out.Needed = q.count(p, self), q.serving(p, self), q.quorum()
	}
	q.hung, q.seen = out.Hung, out
}

// count returns how many requests in a row the member has not answered. The count starts over if the member has applied
// entries in between, because such a member is slow, but does not hang.
func (q *requests) count(p requestResult, self cluster.Status) int {
	if q.hung == 0 || self.Err == nil && q.applied != 0 && self.Applied != q.applied {
		q.since, q.applied = p.began, self.Applied
		return 1
	}
	if q.applied == 0 {
		q.applied = self.Applied
	}
	return q.hung + 1
}

// serving returns how many other voters answer a linearizable read and have applied entries that the local member has
// not. If no other voter has done that, the local member may be waiting for the others. A status needs no other member,
// so if the local member returns none, it hangs by itself, and only the reads of the other voters count.
func (q *requests) serving(p requestResult, self cluster.Status) (others int) {
	for _, m := range q.list.Members {
		s := p.members[m.ID]
		if m.ID == q.own.ID || m.Learner || s.Err != nil || s.MemberID != m.ID || s.ClusterID != q.list.ClusterID {
			continue
		}
		if s.Linearizable && (self.Err != nil || s.Applied > self.Applied) {
			others++
		}
	}
	return others
}

// quorum returns the quorum of all voters.
func (q *requests) quorum() int {
	voters := 0
	for _, m := range q.list.Members {
		if !m.Learner {
			voters++
		}
	}
	return policy.Quorum(voters)
}

// leaderOf returns the leader that the members report; 0 if none does. The newest term counts.
func leaderOf(all map[uint64]cluster.Status) (leader uint64) {
	var term uint64
	for _, s := range all {
		if s.Err == nil && s.Leader != 0 && s.Term >= term {
			leader, term = s.Leader, s.Term
		}
	}
	return leader
}
