// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"slices"
	"time"
)

// OpPhase is the phase of an operation in its record. The next step depends on the phase and on the observed state. A
// phase records facts that cannot be observed: whether a rollback was decided, and whether etcd was stopped cleanly.
type OpPhase string

// The phases of a join, in order, and of its rollback.
const (
	PhaseBegun    OpPhase = "begun"
	PhaseAdded    OpPhase = "added"
	PhaseStarted  OpPhase = "started"
	PhasePromoted OpPhase = "promoted"
	PhaseRollback OpPhase = "rollback"
)

// The phases of a cycle, in order. A cycle, too, begins with PhaseBegun.
const (
	PhaseReady OpPhase = "ready" // the hooks that run before the stop have ended
	PhaseDown  OpPhase = "down"  // safe to touch: etcd is down, keeps running as requested, or is managed externally
	PhaseBack  OpPhase = "back"  // etcd runs again
	// PhaseVerify follows PhaseBack in a readdress: the other members' hosts report that they reach the new peer URL.
	PhaseVerify OpPhase = "verify"
)

// PhaseRemoving is the phase in which the removal may have been sent to etcd, so it may take effect at any time. A
// removal, too, begins with PhaseBegun.
const PhaseRemoving OpPhase = "removing"

// KindJoin is the kind of operation in which a host becomes a voter, a standby or a permanent learner.
const KindJoin = "join"

// KindCycle is the kind of operation that takes a host down and brings it back.
const KindCycle = "cycle"

// KindRemove is the kind of operation that removes a member for good on request. The operation's host is the one that
// received the request, not the member's.
const KindRemove = "remove"

// KindLeave is the kind of operation in which a member leaves for good, because an operator has made the cluster
// smaller or has retired its host. The operation's host is the one whose member leaves.
const KindLeave = "leave"

// KindReplace is the kind of operation that replaces a voter that is dead, unhealthy or has lost its data: a join whose
// record names the member to remove. The operation's host is the one that joins, a voter's host that removes a surplus
// voter, or a host that removes its own member while a standby is ready to become the voter.
const KindReplace = "replace"

// operation declares a kind of operation. To add one, declare it in a file of its own, list it in operations, and let
// concerns call the function that begins it. Its kind and phases go into this file, its steps into step.go and the
// table of package act, and its reasons into reason.go. The model and the simulation must cover it (see their package
// documentation).
type operation struct {
	kind   string
	noun   string    // its name in messages
	byHost bool      // messages say "by" its host and not "of" it, because the operation may be about another member
	phases []OpPhase // the phases of its record, in order
	// carry continues the operation on its own host, from any phase.
	carry func(View) Decision
	// orphan lets a voter's agent end the operation under the lock when the agent of the operation's host is gone; nil
	// if the operation waits for that host or for an operator.
	orphan func(View) Decision
	// joins is true if the operation makes its host a member.
	joins bool
	// down is true if the operation stops its host's member cleanly and brings it back.
	down bool
	// removes returns the member that an operation removes for good; nil if this kind removes none.
	removes func(*Op) uint64
	// title returns the title of an operation in the history.
	title func(OperationTitle) string
	// awaitsRecords lists the phases in which every voter's host must publish its health state and its observations
	// again.
	awaitsRecords []OpPhase
	// ownerOnly reports whether only the operation's own host may continue it now, even if that host's agent is gone;
	// nil if that is never the case.
	ownerOnly func(View) bool
}

// operations returns all declared operations.
func operations() []operation {
	return []operation{joins(), cycles(), removals(), replaces(), leaves()}
}

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

// TakesDown reports whether an operation of that kind stops its host's member cleanly and brings it back, as requested
// on that host's disk.
func TakesDown(kind string) bool {
	o, _ := operationOf(kind)
	return o.down
}

// Removes reports whether an operation of that kind is a removal that an operator requested. The request is on the disk
// of the operation's host. RemovedMember covers the members that other kinds remove.
func Removes(kind string) bool { return kind == KindRemove }

// RemovedMember returns the member that an operation removes for good; 0 if it removes none or there is no operation.
func (op *Op) RemovedMember() uint64 {
	if out := op.info().removes; out != nil {
		return out(op)
	}
	return 0
}

// OperationTitle holds the parts of an operation's title in the history.
type OperationTitle struct {
	Kind, HostName, Target, Work string
	Member                       string // the member's ID
}

// Title returns the title of an operation in the history, even of an unknown kind.
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

// AwaitsRecords reports whether an operation of that kind waits in that phase for every voter's host to publish its
// health state and its observations again.
func AwaitsRecords(kind string, phase OpPhase) bool {
	o, _ := operationOf(kind)
	return slices.Contains(o.awaitsRecords, phase)
}

// MustPublish reports whether the operation in flight waits until this host, in that role, has published its record
// again. Every voter's host must publish, except the operation's own host; a new peer URL is also verified by the
// hosts of learners.
func MustPublish(v View, role Role) bool {
	return v.Op != nil && AwaitsRecords(v.Op.Kind, v.Op.Phase) && v.Op.Host != v.Self.ID &&
		(role == RoleVoter || (role == RoleStandby || role == RoleLearner) && v.Op.Phase == PhaseVerify)
}

// AsksConnections reports whether a host publishes its record, in that phase of that work, only after its etcd has
// connected to other members, according to readings newer than the operation's record. Before a readdress, these are
// all other voters except the one on the operation's host, so that two URLs are never unverified at the same time.
// After it, this is only the member on the operation's host.
func AsksConnections(kind string, w Work, phase OpPhase) bool {
	return kind == KindCycle && w == WorkReaddress && (phase == PhaseReady || phase == PhaseVerify)
}

// joins reports whether the operation makes its host a member.
func (op *Op) joins() bool {
	return op.info().joins
}

// info returns the declaration of the operation's kind; the zero value if there is no operation or the kind is unknown.
func (op *Op) info() operation {
	if op == nil {
		return operation{}
	}
	o, _ := operationOf(op.Kind)
	return o
}

// noun returns the operation's name in messages: its kind if this version does not know the kind.
func (op *Op) noun() string { return cmp.Or(op.info().noun, op.Kind) }

// label names the operation with its host: "cycle of n2", "replacement by n4".
func (op *Op) label() string {
	if op.info().byHost {
		return op.noun() + " by " + op.HostName
	}
	return op.noun() + " of " + op.HostName
}

// removesMember reports whether the operation removes member m for good.
func (op *Op) removesMember(m Member) bool {
	out := op.info().removes
	return out != nil && out(op) == m.ID
}

// replacesMember reports whether the operation's host replaces member m.
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
	case v.Self.Conflict != "" && !continuesAtOldURL(v): // the operation may belong to another host with the same ID
		return blockedBy(v, vetoHostConflict), true
	case !v.Cluster.Reachable:
		return waitForCluster(v), true
	case v.foreign():
		return blockedBy(v, vetoIDMismatch), true
	case !known:
		return wait(OperationInFlight, "this quorumd does not support the operation %q: upgrade quorumd on this host",
			op.Kind), true
	}
	return o.carry(v), true
}

// underLock takes the lock and writes its token into the operation record. It returns false if both have been done.
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

// othersOperation lets a voter's agent take the lock and end the operation of another host whose agent is gone.
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
		return Decision{Step: Step{Kind: StepReleaseLock, Why: "a " + op.label() + " is in flight"}},
			v.Lock.Mine
	}
	if !v.Lock.Mine {
		position := voterPosition(v)
		_, conflicts := identityConflict(v)
		if position < 0 || !v.Lock.Known || v.Lock.Held || conflicts {
			return Decision{}, false
		}
		if v.Op.OrphanedFor < v.Limits.OrphanGrace+time.Duration(position)*v.Limits.LockTTL {
			return Decision{}, false
		}
		return do(Step{Kind: StepTakeLock, Why: "to roll back the " + op.label() +
			", whose agent is gone"}), true
	}
	// the record was written under a different lock, and its host's agent has not been gone for long enough
	if op.Token != v.Lock.Token && v.Op.OrphanedFor < v.Limits.OrphanGrace {
		return do(Step{Kind: StepReleaseLock, Why: "an operation of " + op.HostName + " was recorded meanwhile"}), true
	}
	return o.orphan(v), true
}

// An operation that takes a host down is in flight as long as that host's own disk records it: until it ends there, or
// an operator releases it. Its record in etcd informs the other hosts, but any client with write access can delete that
// record. So the host also publishes the operation in its host record, and writes the operation's record again if it
// was deleted.

// unrecordedOperation returns another host that publishes an operation of its own although the operation's record is
// gone, and whether there is one.
func unrecordedOperation(v View) (Host, bool) {
	for _, h := range v.Hosts {
		if h.InOperation && h.ID != v.Self.ID && (v.Op == nil || v.Op.Host != h.ID) {
			return h, true
		}
	}
	return Host{}, false
}

// recordAgain writes the record of this host's operation again, under the lock. While a reason prevents that, the host
// still ends another host's orphaned operation, or starts or stops its own etcd as needed.
func recordAgain(v View) Decision {
	reason, holds := vetoed(v, vetoHostConflict, vetoLockHeld)
	switch {
	case holds:
	case v.Op != nil:
		reason = blockedBy(v, vetoOperationInFlight).Reasons[0]
	case v.Pause != nil:
		reason = paused(v.Pause)
	case v.blocksAll():
		reason, _ = v.unreadable()
	case v.Health.Hangs:
		reason = Reason{HealthBad, v.Health.Text}
	case !v.Lock.Mine:
		return do(Step{
			Kind: StepTakeLock,
			Why:  "to record this host's operation again: the record was deleted",
		})
	default:
		return do(Step{Kind: StepRecordAgain, Why: string(v.Asked.Work) + ": " + v.Asked.Reason})
	}
	for _, part := range []func(View) (Decision, bool){othersOperation, ownUnit} {
		if d, decided := part(v); decided {
			d.Reasons = append(d.Reasons, reason)
			return d
		}
	}
	return Decision{Reasons: []Reason{reason}}
}
