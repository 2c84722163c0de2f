// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// cautions returns the conditions that block nothing and do not pass by themselves. A host without a step reports them
// after its reasons, in any mode.
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

// caution appends the cautions that apply and whose codes are not among the reasons yet.
func caution(v View, reasons []Reason) []Reason {
	for _, c := range cautions() {
		r, holds := c.reason(v)
		if !holds || hasCode(reasons, r.Code) {
			continue
		}
		reasons = append(reasons[:len(reasons):len(reasons)], r)
	}
	return reasons
}

func hasCode(reasons []Reason, code ReasonCode) bool {
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
			if i > 0 && c.code == r.Code { // the first reason is why the host does nothing
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
