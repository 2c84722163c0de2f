// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package round

import (
	"slices"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/network"
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
	old := func(m network.Sight) bool {
		return m.Member == uint64(r.Op.Replaces) && m.LookedAt != 0 && m.LookedAt <= r.AskedSince
	}
	return (!r.Connections.Known || r.Connections.At > r.AskedSince) && !slices.ContainsFunc(r.Sights, old)
}
