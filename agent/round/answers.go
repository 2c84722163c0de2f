// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package round

import (
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/agent/record"
)

// Answers are the status replies of the individual members while there is no quorum.
type Answers struct {
	Membership cluster.Membership // the last member list; without names and IDs if none was ever read
	Of         map[uint64]cluster.Status
}

// Answered reports whether a member answered its status request while there was no quorum.
func (r *Round) Answered(id uint64) bool {
	s, asked := r.Answers.Of[id]
	return asked && s.Err == nil && r.Answers.Membership.ClusterID != 0
}

// Answering counts the voters that answered.
func (r *Round) Answering() (n int) {
	for _, m := range r.Answers.Membership.Members {
		if !m.Learner && r.Answered(m.ID) {
			n++
		}
	}
	return n
}

// AnswersNow reports whether this host's observations of the member to be replaced are newer than the record in etcd
// that asks for them. Without such a record or an operation it returns true.
func (r *Round) AnswersNow() bool {
	if r.AskedSince == 0 || r.Op == nil {
		return true
	}
	old := func(m network.Reading) bool {
		return m.Member == uint64(r.Op.Replaces) && m.LookedAt != 0 && m.LookedAt <= r.AskedSince
	}
	return (!r.Connections.Known || r.Connections.At > r.AskedSince) && !slices.ContainsFunc(r.Probes, old)
}

// Reachability returns how this host reaches a member according to its probes, with the time since which a lost member
// is lost by this host's wall clock.
func (r *Round) Reachability(m network.Reading) record.Reachability {
	to := record.Reachability{MemberID: record.MemberID(m.Member), Peer: m.Peer.State, Client: m.Client.State}
	if m.Lost {
		to.LostSince = r.Wall.Add(m.LostAt - r.At).UTC().Truncate(time.Millisecond)
	}
	return to
}

// Link returns whether this host's etcd receives messages from a member: [record.LinkUp], [record.LinkNone], or empty
// if that is unknown.
func (r *Round) Link(member uint64) string {
	switch {
	case !r.Connections.Known:
		return ""
	case r.Connections.Of[member]:
		return record.LinkUp
	}
	return record.LinkNone
}
