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

// Since remembers when something was first seen to be as it is. It only measures: an agent that has just started begins
// at zero, which makes every wait longer and none shorter. Only the clean stretch of a host that was taken out, which
// may be a day, goes on from what is on its disk.
type Since struct {
	marks map[string]mark
}

type mark struct {
	value string
	at    time.Duration
	seen  time.Duration // when it was last asked for
	round uint64
}

// Of gives how long value has been what name is, this round included.
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

// begin sets since when something has been as it is, where another agent on this host has measured before.
func (s *Since) begin(name, value string, at time.Duration) {
	if s.marks == nil {
		s.marks = map[string]mark{}
	}
	s.marks[name] = mark{value: value, at: at, seen: at}
}

// Forget drops what was not asked for in this round: a break starts the count anew.
func (s *Since) Forget(round uint64) {
	for name, m := range s.marks {
		if m.round != round {
			delete(s.marks, name)
		}
	}
}

// said begins the name of what a round in which nobody could be asked does not end.
const said = "said/"

// carry keeps what was said over such a round, if it was seen since then.
func (s *Since) carry(oldest time.Duration, round uint64) {
	for name, m := range s.marks {
		if strings.HasPrefix(name, said) && m.seen >= oldest {
			m.round = round
			s.marks[name] = m
		}
	}
}

// bridge keeps one mark over such a round, if it was asked for since then.
func (s *Since) bridge(name string, oldest time.Duration, round uint64) {
	if m, ok := s.marks[name]; ok && m.seen >= oldest {
		m.round = round
		s.marks[name] = m
	}
}

// truth gives how long a condition has held without break; 0 when it does not hold.
func (s *Since) truth(name string, holds bool, now time.Duration, round uint64) time.Duration {
	if !holds {
		delete(s.marks, name)
		return 0
	}
	return s.Of(name, "", now, round)
}

// holds tells whether a condition held when it was last looked at.
func (s *Since) holds(name string) bool {
	_, ok := s.marks[name]
	return ok
}

// trackMember fills in the durations of a member.
func (s *Since) trackMember(m *policy.Member, applied uint64, limits policy.Limits, paused bool, now time.Duration,
	round uint64,
) {
	name := "member/" + strconv.FormatUint(m.ID, 16) + "/"
	m.LiveFor = s.truth(name+"live", m.Live, now, round)
	m.DownFor = s.truth(name+"down", !m.Live, now, round)
	m.BehindFor = s.truth(name+"behind", m.Live && m.LagKnown && m.Lag > limits.PromoteLag, now, round)
	m.SteadyFor = s.truth(name+"steady", m.Live && m.LagKnown && m.Lag <= limits.PromoteLag, now, round)
	if !m.Live { // no answer is no progress: the mark stays at the last index seen
		applied = s.lastApplied(name + "applied")
	}
	value := strconv.FormatUint(applied, 10)
	m.StillFor = s.Of(name+"still", value, now, round)
	if paused { // nobody may help it along now
		value += fmt.Sprintf("/paused at %d", round)
	}
	m.StalledFor = s.Of(name+"applied", value, now, round)
}

func (s *Since) lastApplied(name string) uint64 {
	var n uint64
	if m, ok := s.marks[name]; ok {
		_, _ = fmt.Sscan(m.value, &n) // zero when it was never seen
	}
	return n
}
