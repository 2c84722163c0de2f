// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// sights is what this host publishes of its way to the others. For the same members it changes at most every six looks,
// and for a time alone every ten minutes: a network that is never the same makes a member write once a minute, and all
// spares of a fleet together less than twice a second. That a member is lost, or is so no more, members say at once.
type sights struct {
	shown []record.Sight
	begun bool
	at    time.Duration // when the shown ones last changed
	lost  map[uint64]lost
}

// lost is since when a member has been so: on this host's clock, and as it is published.
type lost struct {
	at time.Duration
	on time.Time
}

// sightLooks is for how many looks at a member what is published of it stays as it is.
const sightLooks = 6

// steady gives what to publish of what a round has seen.
func (s *sights) steady(r *round.Round) []record.Sight {
	now, every := r.At, r.SightEvery
	if !s.begun {
		s.begun, s.at = true, now
	}
	next, known := s.quantised(r.Sights)
	s.words(next, r)
	stood := now - s.at
	others := known && len(next) > 0 && !slices.EqualFunc(next, s.shown, func(a, b record.Sight) bool {
		return a.Member == b.Member
	}) // all members have been looked at; they change by operations alone
	other := !slices.EqualFunc(next, s.shown, func(a, b record.Sight) bool {
		return a.Member == b.Member && a.Peer == b.Peer && a.Client == b.Client
	})
	words := says(next, s.shown) || says(s.shown, next)
	if others || words || other && stood >= sightLooks*every || !slices.Equal(next, s.shown) && stood >= p99Every {
		s.shown, s.at = next, now
	}
	return s.shown
}

// words adds to what is to be published who is lost, where that stood, and whether this host's etcd hears of it, where
// it has a word in that.
func (s *sights) words(next []record.Sight, r *round.Round) {
	before := s.lost
	s.lost = map[uint64]lost{}
	if !r.Decision.Role.ReportsDeadVoters() {
		return
	}
	for _, m := range r.Sights {
		i := slices.IndexFunc(next, func(to record.Sight) bool { return uint64(to.Member) == m.Member })
		if i < 0 || !m.Lost {
			continue
		}
		l, same := before[m.Member]
		if !same || l.at != m.LostAt {
			l = lost{m.LostAt, r.Wall.Add(m.LostAt - r.At).UTC().Truncate(time.Millisecond)}
		}
		s.lost[m.Member], next[i].Lost, next[i].Domain = l, l.on, r.View.DomainOf(m.Member)
		switch {
		case !r.Connections.Known:
		case r.Connections.Of[m.Member]:
			next[i].Link = record.LinkUp
		default:
			next[i].Link = record.LinkNone
		}
	}
}

// says tells whether a list calls somebody lost otherwise than another one does.
func says(list, other []record.Sight) bool {
	return slices.ContainsFunc(list, func(a record.Sight) bool {
		return !a.Lost.IsZero() && !slices.ContainsFunc(other, func(b record.Sight) bool {
			return a.Member == b.Member && a.Lost.Equal(b.Lost) && a.Link == b.Link && a.Domain == b.Domain
		})
	})
}

// seenNow gives what this host sees at this moment, as it shows it itself.
func seenNow(seen []network.Sight) []control.Sight {
	var now sights
	quantised, _ := now.quantised(seen)
	out := sightsStatus(quantised)
	for i := range out {
		out[i].Lost = slices.ContainsFunc(seen, func(s network.Sight) bool {
			return s.Lost && record.MemberID(s.Member).String() == out[i].MemberID
		})
	}
	return out
}

// quantised gives the sights as they are published, and whether none is missing.
func (s *sights) quantised(seen []network.Sight) (out []record.Sight, known bool) {
	known = true
	for _, m := range seen[:min(len(seen), record.MaxSights)] {
		to := record.Sight{Member: record.MemberID(m.Member), Peer: named(m.Peer.State), Client: named(m.Client.State)}
		if to.Peer == "" && to.Client == "" && !m.Lost {
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
		out = append(out, control.Sight{
			MemberID: s.Member.String(), Peer: s.Peer, Client: s.Client, RTTSeconds: s.RTT, Lost: !s.Lost.IsZero(),
		})
	}
	return out
}
