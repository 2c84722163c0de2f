// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

// Since remembers when a value was first seen. An agent that has just started begins at zero, which can make a wait
// longer but never shorter. Only the healthy period of an ejected host, which may have to last a day, continues from
// the state recorded on the host's disk.
type Since struct {
	marks map[string]mark
}

type mark struct {
	value string
	at    time.Duration
	seen  time.Duration // when the value was last evaluated
	round uint64
}

// Of returns how long name has had this value, up to this round.
func (s *Since) Of(name, value string, now time.Duration, round uint64) time.Duration {
	m, ok := s.marks[name]
	if !ok || m.value != value {
		m = mark{value: value, at: now}
	}
	m.seen, m.round = now, round
	if s.marks == nil {
		s.marks = map[string]mark{}
	}
	s.marks[name] = m
	return now - m.at
}

// begin sets the time at which a previous agent on this host first saw a value.
func (s *Since) begin(name, value string, at time.Duration) {
	if s.marks == nil {
		s.marks = map[string]mark{}
	}
	s.marks[name] = mark{value: value, at: at, seen: at}
}

// Forget drops the values that were not evaluated in this round, so that their durations start over after a gap.
func (s *Since) Forget(round uint64) {
	for name, m := range s.marks {
		if m.round != round {
			delete(s.marks, name)
		}
	}
}

// carried is the prefix of the names of values that survive a round without an answer from etcd.
const carried = "carried/"

// carry keeps the values whose names begin with carried during a round without an answer from etcd, if they were
// evaluated at or after oldest.
func (s *Since) carry(oldest time.Duration, round uint64) {
	for name, m := range s.marks {
		if strings.HasPrefix(name, carried) && m.seen >= oldest {
			m.round = round
			s.marks[name] = m
		}
	}
}

// bridge keeps one value during a round without an answer from etcd, if it was evaluated at or after oldest.
func (s *Since) bridge(name string, oldest time.Duration, round uint64) {
	if m, ok := s.marks[name]; ok && m.seen >= oldest {
		m.round = round
		s.marks[name] = m
	}
}

// truth returns how long a condition has been true without a gap, or 0 if it is false.
func (s *Since) truth(name string, holds bool, now time.Duration, round uint64) time.Duration {
	if !holds {
		delete(s.marks, name)
		return 0
	}
	return s.Of(name, "", now, round)
}

// holds reports whether a condition was true when it was last evaluated.
func (s *Since) holds(name string) bool {
	_, ok := s.marks[name]
	return ok
}

// trackMember fills in the durations of a member.
func (s *Since) trackMember(m *policy.Member, applied uint64, limits policy.Limits, paused bool, now time.Duration,
	round uint64,
) {
	name := "member/" + strconv.FormatUint(m.ID, 16) + "/"
	m.ServedFor = time.Duration(s.number(name + "served"))
	if live, was := s.marks[name+"live"]; was && !m.Live {
		m.ServedFor = live.seen - live.at
	}
	s.Of(name+"served", strconv.FormatInt(int64(m.ServedFor), 10), now, round)
	m.LiveFor = s.truth(name+"live", m.Live, now, round)
	m.DownFor = s.truth(name+"down", !m.Live, now, round)
	m.BehindFor = s.truth(name+"behind", m.Live && m.LagKnown && m.Lag > limits.PromoteLag, now, round)
	m.SteadyFor = s.truth(name+"steady", m.Live && m.LagKnown && m.Lag <= limits.PromoteLag, now, round)
	if !m.Live { // without an answer no progress is observed: keep the last index
		applied = s.number(name + "applied")
	}
	value := strconv.FormatUint(applied, 10)
	m.StillFor = s.Of(name+"still", value, now, round)
	if paused { // during a pause no host may promote the learner
		value += fmt.Sprintf("/paused at %d", round)
	}
	m.StalledFor = s.Of(name+"applied", value, now, round)
}

// number returns the number at the beginning of a value; 0 if there is no value.
func (s *Since) number(name string) uint64 {
	var n uint64
	if m, ok := s.marks[name]; ok {
		_, _ = fmt.Sscan(m.value, &n)
	}
	return n
}
