// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// JoinNote is the result of an attempt of this host to join, recorded with the step that ends it.
type JoinNote uint8

// The results of an attempt. The zero value records none.
const (
	JoinUncounted JoinNote = iota
	JoinFailed             // the next one waits, longer with each failure in a row
	JoinSucceeded          // resets the count of failures
)

// noteJoin returns the result of this host's attempt to join if the step ends it. A replacement that ended before
// anything was sent to etcd does not count, unless it timed out: then it would begin again at once.
func noteJoin(v View, s Step) JoinNote {
	op := v.Op
	switch {
	case s.Kind != StepEndOp || !op.joins() || op.Host != v.Self.ID || s.Outcome == Disowned,
		op.Kind == KindReplace && op.Target != RoleVoter, // this host does not become a voter
		op.Replaces != 0 && op.Phase == PhaseBegun && s.Outcome != JoinTimedOut:
		return JoinUncounted
	case s.Outcome == Joined:
		return JoinSucceeded
	}
	return JoinFailed
}

// maxBackoff is the longest time between two attempts to join.
const maxBackoff = time.Hour

// JoinBackoff returns how long to wait after a number of failed joins in a row: base after the first, twice as long
// after each further one, at most an hour.
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

// countsRepair reports whether the replacement is counted with the step, which records that its removal may be sent to
// etcd: the agent may die right after sending it. Each replacement is counted once.
func countsRepair(v View, s Step) bool {
	m, _ := v.member()
	return s.Kind == StepSetPhase && s.Phase == PhaseRemoving && v.Op.Replaces != 0 && v.Op.Phase != PhaseRemoving &&
		m.ID != v.Op.Replaces // a host that replaces its own member was not ejected by another
}
