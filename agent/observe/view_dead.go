// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// sights returns what a host reports about the members. Only this host and hosts with a member are considered.
func (b *Builder) sights(r *round.Round, h record.Host) (all []policy.Sight) {
	if h.ID == b.config.Host.ID {
		return b.ownSights(r)
	}
	if _, member := r.Membership.ByPeerURL(h.PeerURL); !member {
		return nil
	}
	for _, s := range h.Sees {
		if _, listed := r.Membership.ByID(uint64(s.MemberID)); !listed {
			continue
		}
		// The report's time and agent identify it: a report that was retracted and repeated between two rounds counts
		// as a new one.
		all = append(all, b.reportedSince(r, h.ID, fmt.Sprint(h.Instance, s.Lost.UnixMilli(), s.Link), policy.Sight{
			MemberID: uint64(s.MemberID), Lost: !s.Lost.IsZero(),
			Unsure: s.Lost.IsZero() && !network.ParseState(s.Peer).Accepts() &&
				!network.ParseState(s.Client).Accepts(),
			Connected: s.Link == record.LinkUp, ConnectedKnown: s.Link == record.LinkUp || s.Link == record.LinkNone,
			Domain: s.Domain,
		}))
	}
	return all
}

// ownSights returns what this host observes now. Its host record may be older, and a spare does not publish these
// observations.
func (b *Builder) ownSights(r *round.Round) (all []policy.Sight) {
	for _, s := range r.Sights {
		if !s.Lost && s.Peer.State == network.Unknown && s.Client.State == network.Unknown {
			continue
		}
		known := s.Lost && r.Connections.Known
		up := known && r.Connections.Of[s.Member]
		all = append(all, b.reportedSince(r, b.config.Host.ID, fmt.Sprint(s.LostAt, known, up), policy.Sight{
			MemberID: s.Member, Lost: s.Lost, Connected: up, ConnectedKnown: known,
			Unsure: !s.Lost && !s.Peer.State.Accepts() && !s.Client.State.Accepts(),
		}))
	}
	return all
}

// reportedSince returns the sight with the time for which the host has reported it unchanged.
func (b *Builder) reportedSince(r *round.Round, host, words string, s policy.Sight) policy.Sight {
	s.For = b.since.Of(fmt.Sprintf(carried+"host/%s/sees/%x", host, s.MemberID), words, r.At, r.Number)
	return s
}

// agentGone returns for how long the agent of a member's host has been gone. It adds the TTL of the host record,
// because the record outlives its agent by that time.
func (b *Builder) agentGone(r *round.Round, m cluster.Member) time.Duration {
	there := func(h record.Host) bool { return mayHold(h, m) }
	gone := r.HostsAt != 0 && !slices.ContainsFunc(r.Hosts, there)
	since := b.since.truth(fmt.Sprintf(carried+"host of %x/gone", m.ID), gone, r.At, r.Number)
	if !gone {
		return 0
	}
	return since + b.config.Timing.HostRecordTTL
}

// mayHold reports whether a host may hold a member. Any match counts: a host whose record contradicts the member list
// is alive.
func mayHold(h record.Host, m cluster.Member) bool {
	return slices.Contains(m.PeerURLs, h.PeerURL) || uint64(h.MemberID) == m.ID || m.Name != "" && h.Name == m.Name
}

// memberLost returns for how long a host has reported that its member can never come back.
func (b *Builder) memberLost(r *round.Round, h record.Host) time.Duration {
	if !h.MemberLost {
		return 0
	}
	return b.since.Of("host/"+h.ID+"/lost", h.Instance, r.At, r.Number)
}
