// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// If etcd is managed externally, for example by a kubelet, and no operator's hook starts and stops it, quorumd neither
// starts nor stops it: decideAllowed withholds such steps. quorumd still takes all other steps, and coordinates
// operations: this host waits in the queue, transfers leadership, and is then safe to touch while its etcd still runs.
// The external manager stops and starts etcd, which quorumd detects at etcd's ports.

// externalReason returns the reason why quorumd does not start or stop etcd.
func (v View) externalReason() Reason {
	return Reason{EtcdExternal, fmt.Sprintf("this host's etcd is managed externally and is %s: quorumd neither "+
		"starts nor stops it", cmp.Or(string(v.Unit.State), "unknown"))}
}

// MayTakeDown reports whether this host can be taken down for that work. It cannot if the agent would have to do the
// work and the etcd of this host's member is managed externally.
func MayTakeDown(v View, w Work) bool {
	_, listed := v.member()
	return v.Self.Drives || !listed || !w.info().automatic
}

// ExternallyManaged reports whether this host has a request for which an external manager stops its etcd.
func ExternallyManaged(v View) bool {
	_, listed := v.member()
	return listed && v.Asked != nil && v.mayStopExternally() && !v.Asked.KeepRunning
}

// mayStopExternally reports whether an external manager may stop etcd for this host's request. It may not for work that
// the agent does itself, such as a restart.
func (v View) mayStopExternally() bool { return !v.Self.Drives && !v.Asked.Work.info().automatic }

// awaitExternalStop continues the operation of a host whose etcd is stopped externally: the host is safe to touch while
// the other voters tolerate its loss.
func awaitExternalStop(v View) Decision {
	if v.Asked.Work.info().automatic {
		return do(Step{Kind: StepEndOp, Outcome: EtcdExternal, Why: v.externalReason().Text})
	}
	d := safeToTouch(v)
	for i, r := range d.Reasons {
		if r.Code == InMaintenance {
			d.Reasons[i].Text += "; etcd runs and may be stopped now"
		}
	}
	return d
}

// withdrawSafe withdraws the record that this host is safe to touch, while its etcd still runs.
func withdrawSafe(v View, m Member, r Reason) (Decision, bool) {
	if v.Self.Drives || v.Op.Phase != PhaseDown {
		return Decision{}, false
	}
	return do(Step{Kind: StepSetPhase, Phase: PhaseReady, MemberID: m.ID, Why: "no longer safe to touch: " + r.Text}),
		true
}

// awaitExternalStart waits until an external manager starts etcd.
func awaitExternalStart(v View) Decision {
	d := blockedBy(v, vetoUnitUnusable)
	if v.Op.WrittenFor > v.Limits.ReturnMax {
		d.Reasons = append([]Reason{{NotBack, fmt.Sprintf("for %s: %s", durationfmt.Seconds(v.Op.WrittenFor),
			d.Reasons[0].Text)}}, d.Reasons...)
	}
	return d
}

// etcdExternal reports whether this host's etcd is managed externally.
func etcdExternal(v View) (string, bool) {
	return "this host's etcd is managed externally: quorumd neither starts nor stops it", !v.Self.Drives
}
