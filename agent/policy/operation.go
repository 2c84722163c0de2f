// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"time"
)

// operation declares a kind of operation. To add one, declare it in a file of its own, list it below, and let concerns
// call the function that begins it; its kind and phases go into view.go, its steps into step.go and act's table, its
// reasons into reason.go. The model and the simulation must cover it, see their docs.
type operation struct {
	kind   string
	noun   string    // its name in texts
	phases []OpPhase // that its record may be in, in order
	// carry continues it on the host that its record names, from any point.
	carry func(View) Decision
	// orphan is what a voter's agent does under the lock when the agent of that host is gone; nil if the operation
	// waits for its own host or for the operator.
	orphan func(View) Decision
	// joins is true if it makes its host a member.
	joins bool
	// down is true if it stops its host's member cleanly and brings it back.
	down bool
	// out returns the member that it removes for good; nil if it removes none.
	removes func(*Op) uint64
	// title is its name in the history.
	title func(OperationTitle) string
	// asks are the phases in which every voter's host must publish its health state and what it observes again.
	awaitsRecords []OpPhase
	// ownerOnly reports whether only its own host may touch it now, even if the agent there is gone; nil if never.
	ownerOnly func(View) bool
}

func operations() []operation { return []operation{joins(), cycles(), removals(), replaces()} }

// Kinds returns all kinds of operations.
func Kinds() (all []string) {
	for _, o := range operations() {
		all = append(all, o.kind)
	}
	return all
}

// operationOf returns the declaration of a kind.
func operationOf(kind string) (operation, bool) {
	for _, o := range operations() {
		if o.kind == kind {
			return o, true
		}
	}
	return operation{}, false
}

// TakesDown reports whether an operation of that kind stops its host's member cleanly and brings it back. It follows
// the maintenance request on that host's disk.
func TakesDown(kind string) bool {
	o, _ := operationOf(kind)
	return o.down
}

// Removes reports whether an operation of that kind removes a member without replacing it. It follows the removal
// request on its host's disk.
func Removes(kind string) bool {
	o, _ := operationOf(kind)
	return o.removes != nil && !o.joins
}

// Out returns the member that an operation removes for good; 0 if it removes none or there is no operation.
func (op *Op) RemovedMember() uint64 {
	if out := op.info().removes; out != nil {
		return out(op)
	}
	return 0
}

// OperationTitle holds what names an operation in the history.
type OperationTitle struct {
	Kind, HostName, Target, Work string
	Member                       string // its ID
}

// Title returns the name of an operation, even of an unknown kind.
func Title(t OperationTitle) string {
	if o, known := operationOf(t.Kind); known {
		return o.title(t)
	}
	return joinTitle(t)
}

// Phases returns the phases of a kind of operation, in order; none for an unknown kind.
func Phases(kind string) []OpPhase {
	o, _ := operationOf(kind)
	return o.phases
}

// Asks reports whether an operation of that kind waits in that phase for every voter's host to publish its health state
// and what it observes again.
func AwaitsRecords(kind string, phase OpPhase) bool {
	o, _ := operationOf(kind)
	return slices.Contains(o.awaitsRecords, phase)
}

// Answers reports whether the operation in flight waits for this host, of that role, to publish its record again: every
// voter's host does, except the operation's own.
func MustPublish(v View, role Role) bool {
	return v.Op != nil && AwaitsRecords(v.Op.Kind, v.Op.Phase) && v.Op.Host != v.Self.ID && role == RoleVoter
}

// joins reports whether the operation makes its host a member.
func (op *Op) joins() bool {
	return op.info().joins
}

// info returns the declaration of its kind; the zero value if there is no operation or its kind is unknown.
func (op *Op) info() operation {
	if op == nil {
		return operation{}
	}
	o, _ := operationOf(op.Kind)
	return o
}

// takesOut reports whether it removes that member for good.
func (op *Op) removesMember(m Member) bool {
	out := op.info().removes
	return out != nil && out(op) == m.ID
}

// takesPlaceOf reports whether its host replaces that member.
func (op *Op) replacesMember(m Member) bool { return op.joins() && op.removesMember(m) }

// owns reports whether the operation in flight is this host's and of that kind.
func (v View) owns(kind string) bool {
	return v.Op != nil && v.Op.Kind == kind && v.Op.Host == v.Self.ID
}

// ownOperation continues this host's own operation.
func ownOperation(v View) (Decision, bool) {
	op := v.Op
	if op == nil || op.Host != v.Self.ID {
		return Decision{}, false
	}
	o, known := operationOf(op.Kind)
	switch {
	case v.Self.Conflict != "": // it may belong to another host with our ID
		return blockedBy(v, vetoHostConflict), true
	case !v.Cluster.Reachable:
		return waitForCluster(v), true
	case v.foreign():
		return blockedBy(v, vetoIDMismatch), true
	case !known:
		return wait(OperationInFlight, "%q is an operation unknown to this agent: upgrade it", op.Kind), true
	}
	return o.carry(v), true
}

// underLock makes sure that the lock is ours and that the operation record carries its token.
func underLock(v View, why string) (Decision, bool) {
	switch {
	case !v.Lock.Known || (v.Lock.Held && !v.Lock.Mine):
		return blockedBy(v, vetoLockHeld), true
	case !v.Lock.Mine:
		return do(Step{Kind: StepTakeLock, Why: why}), true
	case v.Op.Token != v.Lock.Token:
		return do(Step{Kind: StepSetPhase, Phase: v.Op.Phase, MemberID: v.Op.MemberID, Why: "under a new lock"}), true
	}
	return Decision{}, false
}

// othersOperation lets a voter's agent end an operation whose own agent is gone. It touches nothing else of another
// host.
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
		turn := voterPosition(v)
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
