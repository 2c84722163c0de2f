// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// pace decides when a host reads from etcd, and which records. Every host runs the loop at the same interval, but what
// a round reads depends on the host's role:
//
//   - An attentive host may have to act, and reads in every round. The attentive hosts are mainly the members, the
//     joining host, and the few spares that the join queue names. Their number does not grow with the fleet.
//   - A resting host is a spare behind others in the join queue. The larger the fleet, the less often it reads, so that
//     the total rate of all resting hosts does not grow with the fleet. In a small fleet it reads in every round.
//
// While nothing happens, an attentive host reads the records in every round, but asks the members only in every
// policy.QuietRounds-th round.
//
// The larger the fleet, the less often a host reads the records of all hosts, which limits the bytes per second. A
// round carries over from the previous round everything that it does not read, together with its age. No step is based
// on carried-over data: see Observer.Confirm.
type pace struct {
	interval time.Duration
	host     string
	limits   Pace
	size     int  // number of hosts with a record, as last known; 0 if not known yet
	draws    int  // number of jitter values drawn
	begun    bool // the members have been asked at least once
	attends  bool
	queued   bool // some voter's agent maintains the join queue
	unasked  int  // rounds since the members were asked

	etcd, hosts time.Duration // when each of these reads is next due
}

// Pace limits how often a host reads from etcd.
type Pace struct {
	RestFrom  int // fleet size up to which resting hosts read in every round
	RestMost  int // maximum number of intervals between two rounds that read
	Resting   int // host records that a resting host reads per interval, on average
	Attentive int // host records that an attentive host reads per interval, on average
	Guided    int // fleet size up to which a maintained join queue does not reduce these rates
}

// UsualPace returns the limits for any fleet. With 100 to 3000 hosts and the default interval, all resting hosts
// together read from etcd in 50 rounds per second; in larger fleets, each reads about once a minute. A host record
// takes about 0.5 KiB, so a resting host reads 2.5 KiB/s of records, and an attentive host 100 KiB/s. While some
// voter's agent maintains the join queue, all resting hosts together read at most 2.5 MiB/s of records, regardless of
// their number.
func UsualPace() Pace {
	return Pace{RestFrom: 100, RestMost: 30, Resting: 10, Attentive: 400, Guided: 1000}
}

// look selects what a round reads from etcd.
type look struct {
	etcd    bool     // read the records that concern every host, and this host's own
	list    bool     // read the member list
	members bool     // ask every member for its status
	hosts   bool     // read the records of all hosts
	behind  []string // without hosts: read the records of the hosts with these IDs
	count   bool     // count the host records
}

// due returns what this round reads. hurry is set if something waits for a current cluster state, and quiet if nothing
// was in progress at the last decision. A resting host does not read all host records before their number is known,
// because a whole fleet may have been started at once, before any voter's agent maintains the join queue.
func (p *pace) due(now time.Duration, hurry, quiet bool) look {
	l := look{hosts: p.begun && now >= p.hosts}
	if l.hosts && p.size == 0 && !p.attends {
		l.hosts, l.count = false, true
	}
	l.members = p.attends || l.hosts || hurry || !p.begun
	l.etcd = l.members || l.count || now >= p.etcd
	l.list = l.etcd
	if quiet && p.attends && !hurry && p.unasked+1 < policy.QuietRounds {
		l.list, l.members = false, false
	}
	return l
}

// asked records what a round has read.
func (p *pace) asked(now time.Duration, did look) {
	p.unasked++
	if did.members {
		p.unasked = 0
	}
	if did.etcd {
		p.etcd = p.after(now, p.rest())
	}
	if did.hosts {
		p.hosts = p.after(now, p.round())
	}
	p.begun = p.begun || did.members
}

// learn records how many hosts there are. In a large fleet even the first read of all records is delayed, because all
// hosts may have been started at once.
func (p *pace) learn(now time.Duration, size int) {
	first := p.size == 0
	p.size = size
	if all := p.round(); first && all > p.interval {
		p.hosts = now + time.Duration(float64(all)*p.chance())
	}
}

// attend sets whether the host is attentive or resting. A host that becomes attentive reads at once.
func (p *pace) attend(now time.Duration, attentive bool) {
	if attentive && !p.attends {
		p.hosts = now
	}
	p.attends = attentive
}

// guide records whether some voter's agent maintains the join queue. Without a join queue, each host must find out by
// itself whether it is the first to join.
func (p *pace) guide(now time.Duration, queued bool) {
	if p.queued == queued || p.attends {
		p.queued = queued
		return
	}
	p.queued = queued
	if p.size > p.limits.Guided { // only in such a fleet does the pace depend on the queue
		p.hosts = now + time.Duration(float64(p.round())*p.chance())
	}
}

// rest returns the time between two rounds in which a resting host reads from etcd.
func (p *pace) rest() time.Duration {
	from := p.limits.RestFrom
	return p.interval * time.Duration(min(max(p.size, from), from*p.limits.RestMost)) / time.Duration(from)
}

// round returns the time between two reads of all host records.
func (p *pace) round() time.Duration {
	share := p.limits.Resting
	if p.attends {
		share = p.limits.Attentive
	}
	wait := p.interval * time.Duration(max(p.size, share)) / time.Duration(share)
	if guided := p.limits.Guided; p.queued && !p.attends && p.size > guided {
		// no hurry: the join queue names the hosts that are needed
		wait = wait * time.Duration(p.size) / time.Duration(guided)
	}
	return wait
}

// after returns now plus about wait. The jitter makes hosts that were started together drift apart.
func (p *pace) after(now, wait time.Duration) time.Duration {
	if wait <= p.interval {
		return now // due in every round, even in one that starts early
	}
	return now + wait*3/4 + time.Duration(float64(wait)/2*p.chance())
}

// chance returns a number in [0, 1) that differs between hosts and between calls, but is the same in every run.
func (p *pace) chance() float64 {
	p.draws++
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d/%s/%d", p.draws, p.host, p.draws) // never fails
	return float64(h.Sum64()>>11) / (1 << 53)
}

// attentive reports whether this host may have to act.
func (o *Observer) attentive(r *round.Round) bool {
	id := o.opt.Config.Host.ID
	_, listed := r.OwnMember(r.Membership, o.opt.Config.Etcd.PeerURL)
	return policy.LooksEveryRound(policy.RoundNeeds{
		Bootstraps: r.Bootstrap != nil, Removes: r.Removal != nil, Transfers: r.Transfer != nil,
		HoldsLock:    r.Did.Token != 0,
		StepRunning:  r.Did.Stuck != "",
		StateUnknown: !r.Reachable, LookedBefore: o.pace.attends, Listed: listed, InQueue: r.Queue.Calls(id),
		GoesFirst: o.in.First, OwnOperation: r.Op != nil && r.Op.Host == id,
	})
}
