// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// RecoveryNote is what the end of a plan records.
type RecoveryNote uint8

// The records. The zero value is none: the plan was not carried out.
const (
	RecoveryLeavesNothing RecoveryNote = iota
	RecoveryAnnounced                  // etcd records for late hosts that this cluster replaced the old one
	RecoveryJoins                      // this host belongs to the new cluster, though not yet as a member
)

// noteRecovery returns what is recorded with the step that ends a plan.
func noteRecovery(v View, s Step) RecoveryNote {
	switch {
	case s.Kind != StepEndRecovery || s.Outcome != Recovered:
		return RecoveryLeavesNothing
	case v.Recovery.Survivor:
		return RecoveryAnnounced
	}
	return RecoveryJoins
}
