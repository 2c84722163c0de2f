// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/agent/record"
)

// sights is what this host publishes of its way to the others. For the same members it changes at most every six looks,
// and for a time alone every ten minutes: a network that is never the same makes a member write once a minute, and all
// spares of a fleet together less than twice a second.
type sights struct {
	shown []record.Sight
	begun bool
	at    time.Duration // when the shown ones last changed
}

// sightTurns is for how many looks at a member what is published of it stays as it is.
const sightTurns = 6

// steady gives what to publish. every is how often this host looks at a member.
func (s *sights) steady(now, every time.Duration, seen []network.Sight) []record.Sight {
	if !s.begun {
		s.begun, s.at = true, now
	}
	next, known := s.quantised(seen)
	stood := now - s.at
	others := known && len(next) > 0 && !slices.EqualFunc(next, s.shown, func(a, b record.Sight) bool {
		return a.Member == b.Member
	}) // all members have been looked at; they change by operations alone
	other := !slices.EqualFunc(next, s.shown, func(a, b record.Sight) bool {
		return a.Member == b.Member && a.Peer == b.Peer && a.Client == b.Client
	})
	if others || other && stood >= sightTurns*every || !slices.Equal(next, s.shown) && stood >= p99Every {
		s.shown, s.at = next, now
	}
	return s.shown
}

// quantised gives the sights as they are published, and whether none is missing.
func (s *sights) quantised(seen []network.Sight) (out []record.Sight, known bool) {
	known = true
	for _, m := range seen[:min(len(seen), record.MaxSights)] {
		to := record.Sight{Member: record.MemberID(m.Member), Peer: named(m.Peer.State), Client: named(m.Client.State)}
		if to.Peer == "" && to.Client == "" {
			known = false
			continue
		}
		rtt := max(m.Peer.RTT, m.Client.RTT)
		to.RTT = quantised(rtt)
		i := slices.IndexFunc(s.shown, func(old record.Sight) bool { return old.Member == to.Member })
		if i >= 0 && near(rtt, s.shown[i].RTT) {
			to.RTT = s.shown[i].RTT
		}
		out = append(out, to)
	}
	return out, known
}

// near tells whether a time is within a step that is rounded up to level, or a quarter beyond its bounds.
func near(d time.Duration, level float64) bool {
	return d.Seconds() > level/2*0.75 && d.Seconds() <= level*1.25
}

func named(s network.State) string {
	if s == network.Unknown {
		return ""
	}
	return s.String()
}

// sightsStatus shows what a host sees of the members.
func sightsStatus(sees []record.Sight) []control.Sight {
	var out []control.Sight
	for _, s := range sees {
		out = append(out, control.Sight{MemberID: s.Member.String(), Peer: s.Peer, Client: s.Client, RTTSeconds: s.RTT})
	}
	return out
}
