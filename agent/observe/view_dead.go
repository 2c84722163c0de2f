// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// reachability returns how a host reaches the members, as it reports. Only this host and hosts with a member are
// considered.
func (b *Builder) reachability(r *round.Round, h record.Host) (all []record.Reachability) {
	if h.ID == b.config.Host.ID {
		return b.ownReachability(r)
	}
	if _, member := r.Membership.Recognize(uint64(h.MemberID), h.PeerURL); !member {
		return nil
	}
	for _, s := range h.Sees {
		if _, listed := r.Membership.ByID(uint64(s.MemberID)); !listed {
			continue
		}
		// The report's agent, time and link state identify it, so that a report that was retracted and repeated between
		// two rounds counts as a new report.
		s.For = b.reportedFor(r, h.ID, s.MemberID, fmt.Sprint(h.Instance, s.LostSince.UnixMilli(), s.Link))
		all = append(all, s)
	}
	return all
}

// ownReachability returns how this host reaches the members now. Its host record may be older, and a spare does not
// publish that a member is lost.
func (b *Builder) ownReachability(r *round.Round) (all []record.Reachability) {
	for _, m := range r.Probes {
		s := r.Reachability(m)
		if !m.Lost && s.Peer == record.PortUnknown && s.Client == record.PortUnknown {
			continue
		}
		if m.Lost {
			s.Link = r.Link(m.Member)
		}
		s.For = b.reportedFor(r, b.config.Host.ID, s.MemberID, fmt.Sprint(m.LostAt, s.Link))
		all = append(all, s)
	}
	return all
}

// reportedFor returns how long a host has reported the same about a member.
func (b *Builder) reportedFor(r *round.Round, host string, member record.MemberID, report string) time.Duration {
	return b.since.Of(fmt.Sprintf(carried+"host/%s/sees/%x", host, uint64(member)), report, r.At, r.Number)
}

// agentGone returns how long the agent of a member's host has been gone. It adds the TTL of the host record, because
// the record expires that long after the agent last renewed it.
func (b *Builder) agentGone(r *round.Round, m cluster.Member) time.Duration {
	there := func(h record.Host) bool { return mayHold(h, m) }
	gone := r.HostsAt != 0 && !slices.ContainsFunc(r.Hosts, there)
	since := b.since.truth(fmt.Sprintf(carried+"host of %x/gone", m.ID), gone, r.At, r.Number)
	if !gone {
		return 0
	}
	return since + b.config.Timing.HostRecordTTL
}

// mayHold reports whether a host may hold a member. Any match counts, because even a host with a record that
// contradicts the member list is alive.
func mayHold(h record.Host, m cluster.Member) bool {
	return slices.Contains(m.PeerURLs, h.PeerURL) || uint64(h.MemberID) == m.ID || m.Name != "" && h.Name == m.Name
}

// memberLost returns how long a host has reported that its member can never come back.
func (b *Builder) memberLost(r *round.Round, h record.Host) time.Duration {
	if !h.MemberLost {
		return 0
	}
	return b.since.Of("host/"+h.ID+"/lost", h.Instance, r.At, r.Number)
}
