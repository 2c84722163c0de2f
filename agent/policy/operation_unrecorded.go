// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "fmt"

// An operation that takes a host down is in flight as long as that host's own disk records it: until it has ended there
// or an operator has released it. Its record in etcd informs the others, and anyone who can write there can delete it;
// so the host also publishes it in its host record, and records it again.

// turnElsewhere reports whether another host publishes an operation of its own whose record is gone.
func unrecordedOperation(v View) (Host, bool) {
	for _, h := range v.Hosts {
		if h.InOperation && h.ID != v.Self.ID && (v.Op == nil || v.Op.Host != h.ID) {
			return h, true
		}
	}
	return Host{}, false
}

// recordAgain writes the record of this host's operation again, under the lock. Until that is possible, the host does
// what its member needs.
func recordAgain(v View) Decision {
	reason, holds := vetoed(v, vetoHostConflict, vetoLockHeld)
	switch {
	case holds:
	case v.Op != nil:
		reason = blockedBy(v, vetoOperationInFlight).Reasons[0]
	case v.Pause != nil:
		reason = Reason{Paused, fmt.Sprintf("by %s: %s", v.Pause.By, v.Pause.Reason)}
	case v.blocksAll():
		reason, _ = v.unreadable()
	case v.Health.Hangs:
		reason = Reason{HealthBad, v.Health.Text}
	case !v.Lock.Mine:
		return do(Step{
			Kind: StepTakeLock,
			Why:  "to record again that this host is taken down: the record was deleted",
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
