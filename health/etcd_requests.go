// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"
)

// EtcdStalled is the code of the check of requests to the local member.
const EtcdStalled Code = "ETCD_STALLED"

// RequestsReading is how the local member answers requests of the agent. The zero value means not measured.
type RequestsReading struct {
	Known  bool
	Absent string // why the requests prove nothing, as a stable text
	Host   string // the name of this host
	// Read is the duration of the last answered linearizable read, and Write of the last answered write, in seconds.
	Read, Write Figure
	// Hung is how many requests in a row the member has not answered in time, and For the time since the first one was
	// sent. Both are 0 after an answer.
	Hung int
	For  time.Duration
	// Writes means that the newest unanswered request is a write and not a linearizable read.
	Writes bool
	// Others is how many of the other voters have answered a linearizable read since the newest request was sent, and,
	// if the local member returns its status, have applied entries that it has not. Needed is the quorum of all voters.
	Others, Needed int
}

const (
	// requestsHung is how many requests in a row must hang. One alone may have been delayed by an election.
	requestsHung = 2
	// requestsWell is how long the member must answer before the finding ends.
	requestsWell = time.Minute
	// requestsSilent is how long the finding lasts while requests prove nothing, for example because the member has no
	// leader.
	requestsSilent = 5 * time.Minute
)

// declareRequests declares the check of requests to the local member. Since etcd 3.8, a member may write its log
// outside of the Raft loop: a leader with a hung disk keeps sending heartbeats, so no other member takes over, and
// /livez reports success. Only its clients notice. A hang inside etcd itself looks the same.
//
// The finding only keeps the host from leading. It does not count towards a replacement: a member also answers nothing
// during a defragmentation and while it installs a snapshot.
func declareRequests() declaration {
	limit := Limit{Of: "requests in a row without an answer", Unit: "requests", Enter: requestsHung - 1}
	return declaration{
		Check: Check{
			Name: "etcd-requests", Component: Etcd, Gates: Leadership,
			Source: "a linearizable read through the local member and, if it leads, a write that changes nothing",
			Limits: []Limit{limit},
			Problems: []Problem{{
				EtcdStalled, Etcd, Stalled, "The local member does not answer requests, but the other voters do.",
				"Its disk hangs, or etcd itself does. If it is the leader, it may still send heartbeats. Then no " +
					"other member takes over by itself, and the leader's clients get no answer.",
				"check 'journalctl -u etcd', and 'journalctl -k' for resets and timeouts of the disk. If a " +
					"defragmentation is the cause, wait until it has ended",
			}},
			Runbook: findingRunbook,
		},
		start:  OK,
		gather: func(at *track) evidence { return &requests{track: at} },
	}
}

// requests is the evidence on how the local member answers.
type requests struct {
	plain

	track   *track
	now     time.Duration
	begun   bool
	seen    RequestsReading
	process EtcdProcess
	known   time.Duration // when the requests last proved anything
	hung    time.Duration // when a request was last unanswered, or the requests proved nothing
}

func (q *requests) read(in Input) {
	q.now, q.seen, q.process = in.Now, in.Etcd.Requests, in.Etcd.Process
	if !q.begun {
		q.begun, q.known, q.hung = true, q.now, q.now
	}
	if q.seen.Known {
		q.known = q.now
	}
	if q.seen.Hung > 0 || !q.seen.Known {
		q.hung = q.now
	}
}

// why returns why the requests prove nothing; empty if they prove something.
func (q *requests) why() string { return Figure{Known: q.seen.Known, Absent: q.seen.Absent}.absent() }

// absent returns why there is no reading. It returns "" while a rule has to end the finding without a reading.
func (q *requests) absent() string {
	if _, over := q.silent(); over || q.restarted() {
		return ""
	}
	return q.why()
}

func (q *requests) report(v *Assessment) {
	v.Figures.Requests, v.Answers = q.seen, q.seen.Known && q.seen.Hung == 0
}

func (q *requests) text() string {
	switch s := q.seen; {
	case !s.Known:
		return q.why()
	case s.Hung == 0 && q.track.State == Stalled:
		return fmt.Sprintf("the local member has answered all requests for %s, OK after %s",
			show((q.now - q.hung).Truncate(time.Second)), show(requestsWell))
	case s.Hung == 0:
		return "the local member answers requests"
	}
	return q.stalledText()
}

// stalledText describes the requests without an answer, and what the other voters do.
func (q *requests) stalledText() string {
	s, what := q.seen, "linearizable read"
	if s.Writes {
		what = "write"
	}
	serve := fmt.Sprintf("%d other voters serve requests", s.Others)
	if s.Others == 1 {
		serve = "1 other voter serves requests"
	}
	return fmt.Sprintf("%s's etcd has answered no request for %s (%s in a row, the last one a %s); %s, quorum %d",
		s.Host, show(s.For.Truncate(time.Second)), plural(s.Hung, "request"), what, serve, s.Needed)
}

// stalls reports whether the member hangs while the others do not. The others must be a quorum without it. Otherwise,
// the requests may wait for the other voters, and no other leader could serve them.
func (q *requests) stalls() bool {
	return q.seen.Known && q.seen.Hung >= requestsHung && q.seen.Needed > 0 && q.seen.Others >= q.seen.Needed
}

// restarted reports whether the etcd process that hung has ended.
func (q *requests) restarted() bool {
	return q.track.State == Stalled && q.process.startedSince(q.track.Since)
}

func (q *requests) silent() (string, bool) {
	return "no result for " + show(requestsSilent) + ": " + q.why(),
		q.track.State == Stalled && !q.seen.Known && q.now-q.known >= requestsSilent
}

func (q *requests) transitions() []rule {
	return []rule{
		{
			[]State{Stalled},
			OK, "", "etcd was restarted, or is not running",
			func() (string, bool) { return "the etcd process that did not answer has ended", q.restarted() }, false,
		},
		{[]State{Stalled}, OK, "", "the requests have given no result for " + show(requestsSilent), q.silent, false},
		{
			[]State{OK},
			Stalled, EtcdStalled,
			fmt.Sprintf("%d requests in a row hang, and a quorum of other voters has applied entries that the "+
				"local member has not", requestsHung),
			when(q.stalls, q.stalledText), false,
		},
		{
			[]State{Stalled},
			OK, "", "the local member has answered all requests for " + show(requestsWell),
			when(func() bool {
				return q.seen.Known && q.now-q.hung >= requestsWell
			}, q.text), false, // recovery time does not double: else a host whose etcd hangs at times could not lead
		},
	}
}
