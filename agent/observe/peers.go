// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"time"

	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// peers remembers the traffic that the local etcd reports from other members, to find out which ones it is connected
// to. etcd's count of connections does not show this: a member that this one cannot connect to, but that can connect
// here, may serve well; and one whose machine lost power is counted until TCP times out, which takes three minutes.
type peers struct {
	at          time.Duration // of the last answer with peer traffic, on the clock of health.Input
	beat        time.Duration // etcd's heartbeat interval, as reported with it
	of          map[uint64]health.Peer
	lastTraffic map[uint64]time.Duration // when traffic from a member last grew
	twice       bool                     // there was an answer before
}

const (
	// connectedLeast and connectedMost limit for how long etcd counts as connected to a member after traffic from it.
	connectedLeast, connectedMost = 4 * time.Second, 30 * time.Second
	// peersOldest is how old an answer may be, and peersIntervals the same in intervals: what one round asks is read in
	// the next.
	peersOldest    = 20 * time.Second
	peersIntervals = 3
)

// read takes in the last report of etcd, if it is new.
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
		if _, told := seen.Peers[id]; !told {
			delete(p.lastTraffic, id)
		}
	}
	p.at, p.of, p.beat = seen.At, seen.Peers, seen.Settings.Heartbeat()
}

// connectedFor returns for how long etcd counts as connected to a member after traffic from it. A serving member sends
// with every heartbeat, by default ten times a second; answers are at least a second apart.
func (p *peers) connectedFor() time.Duration {
	return min(max(connectedLeast, 2*p.beat+askedEvery), connectedMost)
}

// connections returns those of the last answer; now is on the clock of health.Input, and at the same moment on that of
// rounds. They are unknown until etcd has answered twice, and when the last answer is too old for an agent that asks
// this often.
func (p *peers) connections(now, at, interval time.Duration) round.Connections {
	if !p.twice || now-p.at > max(peersOldest, peersIntervals*interval) {
		return round.Connections{}
	}
	c := round.Connections{Known: true, At: at - (now - p.at), Of: map[uint64]bool{}}
	for id := range p.of {
		lastTraffic, ever := p.lastTraffic[id]
		c.Of[id] = ever && p.at-lastTraffic < p.connectedFor()
	}
	return c
}
