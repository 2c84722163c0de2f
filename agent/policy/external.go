// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// Where others run etcd, such as a kubelet, and no hook of the operator's starts and stops it, quorumd does neither:
// no step that does is taken (see held). What is left is whatever needs no start and no stop, and the turn: this host
// gets it, hands the leadership over, and is safe to touch while its etcd still runs. Others stop and start it then,
// and how it goes is seen from its ports.

// runByOthers says so.
func (v View) runByOthers() Reason {
	return Reason{EtcdExternal, fmt.Sprintf("this host's etcd is managed externally and is %s: quorumd neither "+
		"starts nor "+
		"stops it", cmp.Or(string(v.Unit.State), "unknown"))}
}

// MayBeAsked tells whether a host can ever be taken down for that work, as far as who runs its etcd decides it.
func MayBeAsked(v View, w Work) bool {
	_, listed := v.member()
	return v.Self.Drives || !listed || !w.info().alone
}

// ExternallyManaged tells whether others stop this host's etcd for what was asked of it.
func ExternallyManaged(v View) bool {
	_, listed := v.member()
	return listed && v.Asked != nil && v.othersStop() && !v.Asked.KeepRunning
}

// othersStop tells whether others may stop etcd for what was asked of this host. A restart and a command are all the
// agent's own work.
func (v View) othersStop() bool { return !v.Self.Drives && !v.Asked.Work.info().alone }

// lentOut is a host whose turn it is and whose etcd others stop: it is safe to touch from now on, and no longer when
// the other voters cannot spare it any more.
func lentOut(v View) Decision {
	if v.Asked.Work.info().alone {
		return do(Step{Kind: StepEndOp, Outcome: EtcdExternal, Why: v.runByOthers().Text})
	}
	d := touchable(v)
	for i, r := range d.Reasons {
		if r.Code == InMaintenance {
			d.Reasons[i].Text += "; etcd runs and may be stopped now"
		}
	}
	return d
}

// notSafe takes back that this host is safe to touch, while its etcd still runs.
func notSafe(v View, m Member, r Reason) (Decision, bool) {
	if v.Self.Drives || v.Op.Phase != PhaseDown {
		return Decision{}, false
	}
	return do(Step{Kind: StepSetPhase, Phase: PhaseReady, MemberID: m.ID, Why: "no longer safe to touch: " + r.Text}),
		true
}

// othersStart waits for others to start etcd.
func othersStart(v View) Decision {
	d := because(v, vetoUnitUnusable)
	if v.Op.WrittenFor > v.Limits.ReturnMax {
		d.Reasons = append([]Reason{{NotBack, fmt.Sprintf("for %s: %s", durationfmt.Seconds(v.Op.WrittenFor),
			d.Reasons[0].Text)}}, d.Reasons...)
	}
	return d
}

// etcdExternal is told for as long as it is so, on a host that is a member or may become one.
func etcdExternal(v View) (string, bool) {
	return "this host's etcd is managed externally: quorumd neither starts nor stops it", !v.Self.Drives
}
