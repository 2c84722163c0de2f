// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// sees makes the view of what a host says of the members: a host that is one itself, or this one.
func (b *Builder) sees(r *round.Round, h record.Host) (all []policy.Sight) {
	if _, member := r.Membership.ByPeerURL(h.PeerURL); !member {
		return b.seesItself(r, h)
	}
	for _, s := range h.Sees {
		if _, listed := r.Membership.ByID(uint64(s.Member)); !listed {
			continue
		}
		word := policy.Sight{
			MemberID: uint64(s.Member), Lost: !s.Lost.IsZero(),
			Connected: s.Link == record.LinkUp, ConnectedKnown: s.Link == record.LinkUp || s.Link == record.LinkNone,
		}
		// The time and the agent are part of the word: one that was taken back unseen in between is another.
		word.For = b.since.Of(fmt.Sprintf("host/%s/sees/%x", h.ID, uint64(s.Member)),
			fmt.Sprint(h.Instance, s.Lost.UnixMilli(), s.Link), r.At, r.Number)
		all = append(all, word)
	}
	return all
}

// seesItself makes it of what this host sees, where it is a spare: those publish no such words.
func (b *Builder) seesItself(r *round.Round, h record.Host) (all []policy.Sight) {
	if h.ID != b.config.Host.ID {
		return nil
	}
	for _, s := range r.Sights {
		if s.Lost || s.Peer.State != network.Unknown || s.Client.State != network.Unknown {
			all = append(all, policy.Sight{MemberID: s.Member, Lost: s.Lost})
		}
	}
	return all
}

// agentGone gives since when no record of the host at a peer URL has been seen. It outlives its agent by the presence
// TTL.
func (b *Builder) agentGone(r *round.Round, peerURL string) time.Duration {
	gone := r.HostsAt != 0 && !slices.ContainsFunc(r.Hosts, func(h record.Host) bool { return h.PeerURL == peerURL })
	since := b.since.truth("host at "+peerURL+"/gone", gone, r.At, r.Number)
	if !gone {
		return 0
	}
	return since + b.config.Timing.PresenceTTL
}

// memberLost gives since when a host has said that its member can never come back.
func (b *Builder) memberLost(r *round.Round, h record.Host) time.Duration {
	if !h.MemberLost {
		return 0
	}
	return b.since.Of("host/"+h.ID+"/lost", h.Instance, r.At, r.Number)
}
