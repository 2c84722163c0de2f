// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"time"

	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// peers remembers what the local etcd has told of the other members, to see from whom it hears. What connections it
// counts says neither: where it cannot connect to a member that can connect to it, that member may serve well, and one
// whose machine has lost power it counts until TCP gives up, which takes three minutes.
type peers struct {
	at    time.Duration // of the last answer that has told of them, on the clock of health.Input
	beat  time.Duration // of etcd's heart, as was told with it
	of    map[uint64]health.Peer
	heard map[uint64]time.Duration // when more was last seen to have come from a member
	twice bool                     // there was an answer before
}

const (
	// heardLeast and heardMost bound for how long etcd counts as connected to whom it has heard of.
	heardLeast, heardMost = 4 * time.Second, 30 * time.Second
	// peersOldest is how old an answer may be, and peersIntervals for how many intervals: what is asked in one round
	// is read in the next.
	peersOldest    = 20 * time.Second
	peersIntervals = 3
)

// read takes in what etcd has told last, if that is new.
func (p *peers) read(seen health.EtcdReading) {
	if seen.Peers == nil || seen.At == p.at && p.of != nil {
		return
	}
	p.twice = p.of != nil
	if p.heard == nil {
		p.heard = map[uint64]time.Duration{}
	}
	for id, peer := range seen.Peers {
		if p.twice && peer.Received != p.of[id].Received {
			p.heard[id] = seen.At
		}
	}
	for id := range p.heard {
		if _, told := seen.Peers[id]; !told {
			delete(p.heard, id)
		}
	}
	p.at, p.of, p.beat = seen.At, seen.Peers, seen.Settings.Heartbeat()
}

// heardFor is for how long etcd counts as connected to whom it has heard of. A member that serves sends with every
// beat, ten times a second where nobody has set it otherwise, and answers are at least a second apart.
func (p *peers) heardFor() time.Duration {
	return min(max(heardLeast, 2*p.beat+askedEvery), heardMost)
}

// connections gives those of the last answer; now is on the clock of health.Input, and at the same moment on that of
// rounds. They are not known before etcd has told twice, nor when that was long ago, by an agent that looks so often.
func (p *peers) connections(now, at, interval time.Duration) round.Connections {
	if !p.twice || now-p.at > max(peersOldest, peersIntervals*interval) {
		return round.Connections{}
	}
	c := round.Connections{Known: true, At: at - (now - p.at), Of: map[uint64]bool{}}
	for id := range p.of {
		heard, ever := p.heard[id]
		c.Of[id] = ever && p.at-heard < p.heardFor()
	}
	return c
}
