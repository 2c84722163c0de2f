// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// JoinNote says whether a step ends a try of this host to join, which is noted with it.
type JoinNote uint8

// What a step is to a host's tries to join. The zero value is none.
const (
	JoinUncounted JoinNote = iota
	JoinFailed             // the next one waits, the longer the more have failed in a row
	JoinWorked             // those that failed before are forgotten
)

// noteJoin counts the end of an operation by which this host was to become a member. A replacement that has ended
// before etcd was told of anything is no try, unless it has used up its time: it would begin again at once.
func noteJoin(v View, s Step) JoinNote {
	op := v.Op
	switch {
	case s.Kind != StepEndOp || !op.joins() || op.Host != v.Self.ID || s.Outcome == Disowned,
		op.Kind == KindReplace && op.Target != RoleVoter, // nobody was to join
		op.Replaces != 0 && op.Phase == PhaseBegun && s.Outcome != JoinTooLong:
		return JoinUncounted
	case s.Outcome == Joined:
		return JoinWorked
	}
	return JoinFailed
}

// maxBackoff is the longest time between two tries to join.
const maxBackoff = time.Hour

// JoinBackoff gives how long after the last of so many joins that failed in a row the next may begin: base after the
// first, twice as long after each further one, at most an hour.
func JoinBackoff(failed int, base time.Duration) time.Duration {
	if failed == 0 {
		return 0
	}
	wait := base
	for range failed - 1 {
		wait = min(2*wait, maxBackoff)
	}
	return wait
}

// countsRepair tells whether a step is the one from which on etcd may be told that the member goes whose place this
// host takes: with it is written that it does, once for a member, since the agent may die in between.
func countsRepair(v View, s Step) bool {
	m, _ := v.member()
	return s.Kind == StepSetPhase && s.Phase == PhaseRemoving && v.Op.Replaces != 0 && v.Op.Phase != PhaseRemoving &&
		m.ID != v.Op.Replaces // a host that takes its own place was not taken out by another
}
