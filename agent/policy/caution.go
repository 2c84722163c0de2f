// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// cautions declares what blocks nothing and does not pass by itself: it is reported alongside the reason for as long as
// it lasts, in any mode, on a host that is a member or may become one.
func cautions() []veto {
	return []veto{
		vetoTooOld(),
		vetoTooNew(),
		vetoUnitDisabled(),
		vetoEtcdExternal(),
		vetoLeaderSlow(),
		vetoVoterUnhealthy(),
		vetoVoterSuspect(),
		vetoSurplus(),
		vetoStandbyLost(),
		vetoBackupFailed(),
		vetoBackupOld(),
		vetoSnapshotFirst(),
		vetoRestoreTestFailed(),
		vetoRestoreTestOverdue(),
	}
}

// caution adds those that hold and were not reported yet.
func caution(v View, reasons []Reason) []Reason {
	for _, c := range cautions() {
		r, holds := c.reason(v)
		if !holds || said(reasons, r.Code) {
			continue
		}
		reasons = append(reasons[:len(reasons):len(reasons)], r)
	}
	return reasons
}

func said(reasons []Reason, code ReasonCode) bool {
	for _, r := range reasons {
		if r.Code == code {
			return true
		}
	}
	return false
}

// Cautions returns those of a decision's reasons that block nothing.
func (d Decision) Cautions() []Reason {
	var list []Reason
	for i, r := range d.Reasons {
		for _, c := range cautions() {
			if i > 0 && c.code == r.Code { // the first one counts
				list = append(list, r)
			}
		}
	}
	return list
}

func unitDisabled(v View) (string, bool) {
	if !v.Unit.NotAtBoot || v.Unit.State == UnitMissing {
		return "", false
	}
	return "the unit is not enabled: after a boot etcd stays down until it is started by hand", true
}
