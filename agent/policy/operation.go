// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"time"
)

// operation declares a kind of operation. Whoever adds one declares it in a file of its own, lists it below, and lets
// concerns ask the part that begins it; its kind and phases stand in view.go, its steps in step.go and in act's table,
// its reasons in reason.go. The model and the simulation must play it, see their docs.
type operation struct {
	kind   string
	noun   string    // what it is called by people
	phases []OpPhase // that its record may be in, in order
	// carry carries it on, on the host that its record names, from whatever point it is seen at.
	carry func(View) Decision
	// orphan is what a voter's agent does under the lock when the agent of that host is gone; nil where nobody does
	// anything: it waits for its own host, or for a person.
	orphan func(View) Decision
	// joins tells whether its host becomes a member by it.
	joins bool
	// down tells whether it takes its host's member down in order, and brings it back.
	down bool
	// out gives the member that it takes out for good; nil where it takes out none.
	out func(*Op) uint64
	// title is what people are told it by once it has ended.
	title func(OperationTitle) string
	// asks are the phases in which every voter's host tells anew how it is, and what it sees.
	asks []OpPhase
	// ownerOnly tells whether nobody but its own host may touch it now, with its agent gone or not; nil where that
	// never is so.
	ownerOnly func(View) bool
}

func operations() []operation { return []operation{joins(), cycles(), removals(), replaces()} }

// Kinds gives the kinds of operations that there are.
func Kinds() (all []string) {
	for _, o := range operations() {
		all = append(all, o.kind)
	}
	return all
}

// operationOf gives the declaration of a kind.
func operationOf(kind string) (operation, bool) {
	for _, o := range operations() {
		if o.kind == kind {
			return o, true
		}
	}
	return operation{}, false
}

// TakesDown tells whether an operation of that kind takes its host's member down in order, and brings it back: it goes
// by the request for maintenance that lies on that host's disk.
func TakesDown(kind string) bool {
	o, _ := operationOf(kind)
	return o.down
}

// Removes tells whether an operation of that kind takes a member out and puts nobody in its place: it goes by the
// request for a removal that lies on its host's disk.
func Removes(kind string) bool {
	o, _ := operationOf(kind)
	return o.out != nil && !o.joins
}

// Out gives the member that an operation takes out for good; 0 where it takes out none, or there is no operation.
func (op *Op) Out() uint64 {
	if out := op.info().out; out != nil {
		return out(op)
	}
	return 0
}

// OperationTitle is what people know an operation by, as its record has it.
type OperationTitle struct {
	Kind, HostName, Target, Work string
	Member                       string // its ID
}

// Title names an operation for people, also one of a kind that is not known.
func Title(t OperationTitle) string {
	if o, known := operationOf(t.Kind); known {
		return o.title(t)
	}
	return joinTitle(t)
}

// Phases gives those that the record of a kind of operation may be in, in order; none for a kind that is not known.
func Phases(kind string) []OpPhase {
	o, _ := operationOf(kind)
	return o.phases
}

// Asks tells whether an operation of that kind waits in that phase for every voter's host to tell anew how it is, and
// what it sees.
func Asks(kind string, phase OpPhase) bool {
	o, _ := operationOf(kind)
	return slices.Contains(o.asks, phase)
}

// Answers tells whether the operation in flight waits for this host, of that role, to tell anew how it is, and what it
// sees: every voter's does, but for its own host.
func Answers(v View, role Role) bool {
	return v.Op != nil && Asks(v.Op.Kind, v.Op.Phase) && v.Op.Host != v.Self.ID && role == RoleVoter
}

// joins tells whether its host becomes a member by it.
func (op *Op) joins() bool {
	return op.info().joins
}

// info gives the declaration of its kind; one of which nothing is true where there is no operation, or none that is
// known.
func (op *Op) info() operation {
	if op == nil {
		return operation{}
	}
	o, _ := operationOf(op.Kind)
	return o
}

// takesOut tells whether it takes that member out for good.
func (op *Op) takesOut(m Member) bool {
	out := op.info().out
	return out != nil && out(op) == m.ID
}

// takesPlaceOf tells whether its host takes the place of that member.
func (op *Op) takesPlaceOf(m Member) bool { return op.joins() && op.takesOut(m) }

// owns tells whether the operation in flight is this host's, and of that kind.
func (v View) owns(kind string) bool {
	return v.Op != nil && v.Op.Kind == kind && v.Op.Host == v.Self.ID
}

// ownOperation carries this host's own operation on.
func ownOperation(v View) (Decision, bool) {
	op := v.Op
	if op == nil || op.Host != v.Self.ID {
		return Decision{}, false
	}
	o, known := operationOf(op.Kind)
	switch {
	case v.Self.Conflict != "": // perhaps it is the operation of another host with our ID
		return because(v, vetoHostConflict), true
	case !v.Cluster.Reachable:
		return silent(v), true
	case v.foreign():
		return because(v, vetoIDMismatch), true
	case !known:
		return wait(OperationInFlight, "%q is an operation unknown to this agent: upgrade it", op.Kind), true
	}
	return o.carry(v), true
}

// underLock makes sure that the lock is ours and that the operation record carries its token.
func underLock(v View, why string) (Decision, bool) {
	switch {
	case !v.Lock.Known || (v.Lock.Held && !v.Lock.Mine):
		return because(v, vetoLockHeld), true
	case !v.Lock.Mine:
		return do(Step{Kind: StepTakeLock, Why: why}), true
	case v.Op.Token != v.Lock.Token:
		return do(Step{Kind: StepSetPhase, Phase: v.Op.Phase, MemberID: v.Op.MemberID, Why: "under a new lock"}), true
	}
	return Decision{}, false
}

// othersOperation lets a voter's agent end what the agent of another host has begun, and is gone. Nothing else of
// another host is touched.
func othersOperation(v View) (Decision, bool) {
	op := v.Op
	if op == nil || op.Host == v.Self.ID || !v.Cluster.Reachable || v.foreign() {
		return Decision{}, false
	}
	o, known := operationOf(op.Kind)
	if !known || o.orphan == nil {
		return Decision{}, false
	}
	if o.ownerOnly != nil && o.ownerOnly(v) {
		return Decision{Step: Step{Kind: StepReleaseLock, Why: "a " + o.noun + " of " + op.HostName + " is in flight"}},
			v.Lock.Mine
	}
	if !v.Lock.Mine {
		turn := voterTurn(v)
		if turn < 0 || !v.Lock.Known || v.Lock.Held || v.Self.Conflict != "" {
			return Decision{}, false
		}
		if v.Op.OrphanedFor < v.Limits.OrphanGrace+time.Duration(turn)*v.Limits.LockTTL {
			return Decision{}, false
		}
		return do(Step{Kind: StepTakeLock, Why: "to roll back the " + o.noun + " of " + op.HostName +
			", whose agent is gone"}), true
	}
	// it was written while this host held the lock
	if op.Token != v.Lock.Token && v.Op.OrphanedFor < v.Limits.OrphanGrace {
		return do(Step{Kind: StepReleaseLock, Why: "an operation of " + op.HostName + " was recorded meanwhile"}), true
	}
	return o.orphan(v), true
}
