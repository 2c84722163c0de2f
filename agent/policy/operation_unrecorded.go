// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// An operation that takes a host down is in flight as long as that host's own disk records it: until it ends there, or
// an operator releases it. Its record in etcd informs the other hosts, but any client with write access can delete that
// record. So the host also publishes the operation in its host record, and writes the operation's record again.

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

// recordAgain writes the record of this host's operation again, under the lock. While it waits, the host does whatever
// else its member needs.
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
