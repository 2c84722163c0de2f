// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"time"

	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// peers remembers the traffic from other members that the local etcd reports, to find out to which members it is
// connected. etcd's count of connections does not show this. It includes a member whose machine has lost power until
// TCP times out, which takes three minutes. It also includes a member that can connect to this host, even if this host
// cannot connect to that member.
type peers struct {
	at          time.Duration // when the last answer with peer traffic was requested, on the clock of health.Input
	beat        time.Duration // etcd's heartbeat interval, according to that answer
	of          map[uint64]health.Peer
	lastTraffic map[uint64]time.Duration // when traffic from a member last grew
	twice       bool                     // etcd has answered at least twice
}

const (
	// connectedLeast and connectedMost limit the result of connectedFor.
	connectedLeast, connectedMost = 4 * time.Second, 30 * time.Second
	// peersOldest is the maximum age of an answer. peersIntervals is the maximum age in intervals of the loop, because
	// a round sees only answers that an earlier round requested. The larger limit applies.
	peersOldest    = 20 * time.Second
	peersIntervals = 3
)

// read evaluates etcd's last report, if it is new.
func (p *peers) read(seen health.EtcdReading) {
	if seen.Peers == nil || seen.At == p.at && p.of != nil {
		return
	}
	p.twice = p.of != nil
	if p.lastTraffic == nil {
		p.lastTraffic = map[uint64]time.Duration{}
	}
	for id, peer := range seen.Peers {
		if p.twice && peer.Received != p.of[id].Received {
			p.lastTraffic[id] = seen.At
		}
	}
	for id := range p.lastTraffic {
		if _, reported := seen.Peers[id]; !reported {
			delete(p.lastTraffic, id)
		}
	}
	p.at, p.of, p.beat = seen.At, seen.Peers, seen.Settings.Heartbeat()
}

// connectedFor returns how long etcd counts as connected to a member after traffic from that member. A serving member
// sends traffic with every heartbeat, by default ten times a second, while two answers are at least a second apart.
func (p *peers) connectedFor() time.Duration {
	return min(max(connectedLeast, 2*p.beat+askedEvery), connectedMost)
}

// connections returns the connections as of the last answer. now and at are the same moment: now on the clock of
// health.Input, at on the clock of rounds. The connections are unknown until etcd has answered twice, and if the last
// answer is too old for an agent that asks at this interval.
func (p *peers) connections(now, at, interval time.Duration) round.Connections {
	if !p.twice || now-p.at > max(peersOldest, peersIntervals*interval) {
		return round.Connections{}
	}
	c := round.Connections{Known: true, At: at - (now - p.at), Of: map[uint64]bool{}, Active: map[uint64]bool{}}
	for id := range p.of {
		c.Active[id] = p.of[id].Active
		lastTraffic, ever := p.lastTraffic[id]
		c.Of[id] = ever && p.at-lastTraffic < p.connectedFor()
	}
	return c
}
