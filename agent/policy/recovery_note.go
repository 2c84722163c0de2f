// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// RecoveryNote says what the end of a plan leaves behind.
type RecoveryNote uint8

// What is left behind. The zero value is nothing: the plan was not carried out.
const (
	RecoveryLeavesNothing RecoveryNote = iota
	RecoveryTold                       // etcd tells who comes late that this cluster goes on in the old one's place
	RecoveryJoins                      // this host belongs to the new cluster, though not yet as a member of it
)

// noteRecovery gives what goes with the step that ends a plan.
func noteRecovery(v View, s Step) RecoveryNote {
	switch {
	case s.Kind != StepEndRecovery || s.Outcome != Recovered:
		return RecoveryLeavesNothing
	case v.Recovery.Survivor:
		return RecoveryTold
	}
	return RecoveryJoins
}
