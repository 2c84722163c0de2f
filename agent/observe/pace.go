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

// pace decides how often a host asks etcd, and for what. Every host runs the loop at its interval; what a round asks
// depends on the host's role:
//
//   - An attentive host may have to act and asks in every round. These are the members, the joining host, and the few
//     spares that the join queue calls: their number does not grow with the fleet.
//   - A resting host is a spare that other spares precede. The larger the fleet, the less often it asks:
//     together they send as few requests as those of a small fleet. In a small fleet it asks in every round.
//
// While all is quiet, an attentive host reads the records in every round, and asks the members in one of
// policy.QuietRounds.
//
// The records of all hosts are read rarely enough to bound the bytes that a host reads per second, whatever the size of
// the fleet. Everything else is carried over from the round before, with its age. No step is taken on it: see
// Observer.Confirm.
type pace struct {
	interval time.Duration
	host     string
	limits   Pace
	size     int  // present hosts, as last known; 0 if not known yet
	draws    int  // of the jitter
	begun    bool // the members have been asked once
	attends  bool
	queued   bool // a host keeps the join queue
	unasked  int  // rounds since the members were asked

	etcd, hosts time.Duration // when each is due next
}

// Pace limits how often a host asks etcd.
type Pace struct {
	RestFrom  int // hosts that may ask in every round
	RestMost  int // most intervals between two rounds that ask
	Resting   int // host records that a resting host reads per interval, on average
	Attentive int // the same for an attentive host
	Guided    int // hosts that may look this often although a host keeps the join queue
}

// UsualPace returns the limits for any fleet. At the default interval all spares together ask etcd in 50 rounds per
// second, and each of them at least once a minute. A host record has about 0.5 KiB: a resting host reads 2.5 KiB/s of
// them, an attentive one 100 KiB/s. While a host keeps the join queue, all resting hosts together read 2.5 MiB/s,
// however many they are.
func UsualPace() Pace {
	return Pace{RestFrom: 100, RestMost: 30, Resting: 10, Attentive: 400, Guided: 1000}
}

// look is what a round asks of etcd.
type look struct {
	etcd    bool     // what concerns every host, and this host's own record
	list    bool     // the member list
	members bool     // every member's own answer
	hosts   bool     // the records of all hosts
	behind  []string // or the records of these hosts, by ID
	count   bool     // how many hosts there are
}

// due returns what this round asks. hurry is set if something waits for a current cluster state; quiet is the result of
// the last decision. A resting host does not read all records before it knows how many there are: a whole fleet may
// have been started at once, and no host keeps the join queue yet.
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

// asked records what a round has asked.
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

// learn takes in how many hosts there are. In a large fleet even the first read of all records is delayed: all hosts
// may have been started at once.
func (p *pace) learn(now time.Duration, size int) {
	first := p.size == 0
	p.size = size
	if all := p.round(); first && all > p.interval {
		p.hosts = now + time.Duration(float64(all)*p.chance())
	}
}

// attend makes a host attentive, or lets it rest. One that becomes attentive looks at once.
func (p *pace) attend(now time.Duration, attentive bool) {
	if attentive && !p.attends {
		p.hosts = now
	}
	p.attends = attentive
}

// guide takes in whether a host keeps the join queue. If none does, each host has to find out for itself whether it is
// first.
func (p *pace) guide(now time.Duration, queued bool) {
	if p.queued == queued || p.attends {
		p.queued = queued
		return
	}
	p.queued = queued
	if p.size > p.limits.Guided { // its pace depends on that
		p.hosts = now + time.Duration(float64(p.round())*p.chance())
	}
}

// rest returns the time between two rounds that ask etcd, on a resting host.
func (p *pace) rest() time.Duration {
	from := p.limits.RestFrom
	return p.interval * time.Duration(min(max(p.size, from), from*p.limits.RestMost)) / time.Duration(from)
}

// round returns the time between two reads of all records.
func (p *pace) round() time.Duration {
	share := p.limits.Resting
	if p.attends {
		share = p.limits.Attentive
	}
	wait := p.interval * time.Duration(max(p.size, share)) / time.Duration(share)
	if guided := p.limits.Guided; p.queued && !p.attends && p.size > guided {
		wait = wait * time.Duration(p.size) / time.Duration(guided) // the queue would call it
	}
	return wait
}

// after returns a time about that much later. The jitter lets hosts drift apart that were started together.
func (p *pace) after(now, wait time.Duration) time.Duration {
	if wait <= p.interval {
		return now // in every round, including early ones
	}
	return now + wait*3/4 + time.Duration(float64(wait)/2*p.chance())
}

// chance returns a number from 0 up to 1 that differs between hosts and calls, and is the same in every run.
func (p *pace) chance() float64 {
	p.draws++
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d/%s/%d", p.draws, p.host, p.draws) // never fails
	return float64(h.Sum64()>>11) / (1 << 53)
}

// attentive reports whether this host may have to act.
func (o *Observer) attentive(r *round.Round) bool {
	id := o.opt.Config.Host.ID
	_, listed := r.Membership.ByPeerURL(o.opt.Config.Etcd.PeerURL)
	return policy.LooksEveryRound(policy.RoundNeeds{
		Bootstraps: r.Bootstrap != nil, Removes: r.Removal != nil, HoldsLock: r.Did.Token != 0,
		Steps:  r.Did.Stuck != "",
		Silent: !r.Reachable, Attended: o.pace.attends, Listed: listed, Called: r.Queue.Calls(id),
		GoesFirst: o.in.First, Operated: r.Op != nil && r.Op.Host == id,
	})
}
