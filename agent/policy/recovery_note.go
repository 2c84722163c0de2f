// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// RecoveryNote is what is recorded when a plan ends.
type RecoveryNote uint8

// The notes. The zero value records nothing: the plan was not carried out.
const (
	RecoveryLeavesNothing RecoveryNote = iota
	RecoveryAnnounced                  // write to etcd, for late hosts, that this cluster replaced the old one
	RecoveryJoins                      // write to disk that this host belongs to the new cluster, not yet as a member
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
