// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// If etcd is managed externally, such as by a kubelet, and no operator's hook starts and stops it, quorumd does
// neither: it takes no such step (see held). It does whatever needs no start or stop, and coordinates the operation:
// this host gets its turn, transfers leadership, and is safe to touch while its etcd still runs. The external manager
// then stops and starts etcd, and quorumd observes that from its ports.

// runByOthers returns that reason.
func (v View) externalReason() Reason {
	return Reason{EtcdExternal, fmt.Sprintf("this host's etcd is managed externally and is %s: quorumd neither "+
		"starts nor "+
		"stops it", cmp.Or(string(v.Unit.State), "unknown"))}
}

// MayBeAsked reports whether a host can be taken down for that work, as far as the management of its etcd decides.
func MayTakeDown(v View, w Work) bool {
	_, listed := v.member()
	return v.Self.Drives || !listed || !w.info().automatic
}

// ExternallyManaged reports whether this host's etcd is stopped externally for its request.
func ExternallyManaged(v View) bool {
	_, listed := v.member()
	return listed && v.Asked != nil && v.mayStopExternally() && !v.Asked.KeepRunning
}

// othersStop reports whether etcd may be stopped externally for this host's request. A restart and a command are the
// agent's own work.
func (v View) mayStopExternally() bool { return !v.Self.Drives && !v.Asked.Work.info().automatic }

// lentOut is a host in its operation whose etcd is stopped externally: it is safe to touch from now on, until the other
// voters no longer tolerate its loss.
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

// notSafe revokes that this host is safe to touch, while its etcd still runs.
func withdrawSafe(v View, m Member, r Reason) (Decision, bool) {
	if v.Self.Drives || v.Op.Phase != PhaseDown {
		return Decision{}, false
	}
	return do(Step{Kind: StepSetPhase, Phase: PhaseReady, MemberID: m.ID, Why: "no longer safe to touch: " + r.Text}),
		true
}

// othersStart waits for etcd to be started externally.
func awaitExternalStart(v View) Decision {
	d := blockedBy(v, vetoUnitUnusable)
	if v.Op.WrittenFor > v.Limits.ReturnMax {
		d.Reasons = append([]Reason{{NotBack, fmt.Sprintf("for %s: %s", durationfmt.Seconds(v.Op.WrittenFor),
			d.Reasons[0].Text)}}, d.Reasons...)
	}
	return d
}

// etcdExternal is reported as long as it lasts, on a host that is a member or may become one.
func etcdExternal(v View) (string, bool) {
	return "this host's etcd is managed externally: quorumd neither starts nor stops it", !v.Self.Drives
}
