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

// pace is how often a host asks etcd, and for what. The loop goes round at its interval on every host;
// what a round asks depends on what the host is to the cluster:
//
//   - An attentive host, which may have to act, asks in every round. These are the members, the one
//     that joins, and the few spares that the queue calls: their number does not grow with the fleet.
//   - A resting host is a spare that others go before. The larger the fleet, the more seldom it asks,
//     so that all of them together ask no more than a small fleet does. In a small one it
//     asks in every round.
//
// While all is quiet an attentive host reads the records in every round, and asks the members in one of
// policy.QuietRounds.
//
// The records of all hosts are read so seldom that what a host reads in a second has a bound,
// whatever the size of the fleet. What is not asked is carried over from the round before with its
// age. No step is taken on it: see Observer.Confirm.
type pace struct {
	interval time.Duration
	host     string
	limits   Pace
	size     int  // hosts that are present, as last known; 0 when that is not known yet
	draws    int  // of the jitter
	begun    bool // the members have been asked once
	attends  bool
	queued   bool // somebody keeps the queue
	unasked  int  // rounds since the members were asked

	etcd, hosts time.Duration // when each is due next
}

// Pace are the numbers of how often a host looks.
type Pace struct {
	RestFrom  int // hosts that may ask in every round
	RestMost  int // intervals between two rounds that ask, at most
	Resting   int // host records that a resting host reads in an interval, on average
	Attentive int // and an attentive one
	Guided    int // hosts that may look as often although somebody keeps the queue
}

// UsualPace is for any fleet. At the default interval all spares together make 50 rounds a second
// that ask etcd, each of them at least one in a minute. A host record has about 0.5 KiB: a resting
// host reads 2.5 KiB/s of them, an attentive one 100 KiB/s, and while somebody keeps the queue all that
// rest read 2.5 MiB/s together, however many they are.
func UsualPace() Pace {
	return Pace{RestFrom: 100, RestMost: 30, Resting: 10, Attentive: 400, Guided: 1000}
}

// look says what a round asks of etcd.
type look struct {
	etcd    bool     // what concerns every host, and this host's own record
	list    bool     // the member list
	members bool     // every member's own answer
	hosts   bool     // the records of all hosts
	behind  []string // or those of these, by their IDs
	count   bool     // how many hosts there are
}

// due gives what this round asks. hurry is for somebody who waits for a fresh picture, and quiet is what the last
// decision has found. A host that rests does not look at all hosts before it knows how many there are: a whole fleet
// may have been started at once, and nobody keeps the queue yet.
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

// asked notes that a round has asked for that.
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

// learn takes in how many hosts there are. The first look at them all waits for its turn like every
// other when there are many: all hosts of a fleet may have been started at once.
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

// guide takes in whether somebody keeps the queue. When nobody does any more, each host has to see for
// itself whether it goes first.
func (p *pace) guide(now time.Duration, queued bool) {
	if p.queued == queued || p.attends {
		p.queued = queued
		return
	}
	p.queued = queued
	if p.size > p.limits.Guided { // how often it looks depends on that
		p.hosts = now + time.Duration(float64(p.round())*p.chance())
	}
}

// rest is the time between two rounds that ask etcd, on a host that rests.
func (p *pace) rest() time.Duration {
	from := p.limits.RestFrom
	return p.interval * time.Duration(min(max(p.size, from), from*p.limits.RestMost)) / time.Duration(from)
}

// round is the time between two looks at all hosts.
func (p *pace) round() time.Duration {
	share := p.limits.Resting
	if p.attends {
		share = p.limits.Attentive
	}
	wait := p.interval * time.Duration(max(p.size, share)) / time.Duration(share)
	if guided := p.limits.Guided; p.queued && !p.attends && p.size > guided {
		wait = wait * time.Duration(p.size) / time.Duration(guided) // it would be called
	}
	return wait
}

// after gives a moment about that much later. Hosts that were started together drift apart.
func (p *pace) after(now, wait time.Duration) time.Duration {
	if wait <= p.interval {
		return now // in every round, also in one that comes early
	}
	return now + wait*3/4 + time.Duration(float64(wait)/2*p.chance())
}

// chance gives a number from 0 up to 1 that differs from host to host and from time to time, and is
// the same in every run.
func (p *pace) chance() float64 {
	p.draws++
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d/%s/%d", p.draws, p.host, p.draws) // never fails
	return float64(h.Sum64()>>11) / (1 << 53)
}

// attentive tells whether this host may have to act.
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
