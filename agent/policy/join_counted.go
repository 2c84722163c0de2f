// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// JoinNote is whether a step ends an attempt of this host to join, which is recorded with it.
type JoinNote uint8

// The results of an attempt. The zero value is none.
const (
	JoinUncounted JoinNote = iota
	JoinFailed             // the next one waits, longer with each failure in a row
	JoinSucceeded             // earlier failures are forgotten
)

// noteJoin counts the end of an operation that was to make this host a member. A replacement that ended before anything
// was sent to etcd is no attempt, unless it timed out: it would begin again at once.
func noteJoin(v View, s Step) JoinNote {
	op := v.Op
	switch {
	case s.Kind != StepEndOp || !op.joins() || op.Host != v.Self.ID || s.Outcome == Disowned,
		op.Kind == KindReplace && op.Target != RoleVoter, // no host was to join
		op.Replaces != 0 && op.Phase == PhaseBegun && s.Outcome != JoinTimedOut:
		return JoinUncounted
	case s.Outcome == Joined:
		return JoinSucceeded
	}
	return JoinFailed
}

// maxBackoff is the longest time between two attempts to join.
const maxBackoff = time.Hour

// JoinBackoff returns how long after the last of so many failed joins in a row the next may begin: base after the
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

// countsRepair reports whether a removal may be sent to etcd from this step on: the replacement is counted with it,
// once for a member, since the agent may die in between.
func countsRepair(v View, s Step) bool {
	m, _ := v.member()
	return s.Kind == StepSetPhase && s.Phase == PhaseRemoving && v.Op.Replaces != 0 && v.Op.Phase != PhaseRemoving &&
		m.ID != v.Op.Replaces // a host that replaces its own member was not ejected by another
}
