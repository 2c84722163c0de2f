// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Notes are what to write alongside the step: the queue to etcd, and the rest to this host's disk. The agent writes
// them outside the control loop, because the disk may hang.
type Notes struct {
	StartGuard       StartGuard
	Request          RequestNote
	Removal          RemovalNote
	Self             SelfNote
	Queue            QueueNote
	Backup           BackupNote
	RestoreTest      RestoreTestNote
	BootstrapAttempt BootstrapNote

	// These are written with the step and mean nothing without it.
	Join     JoinNote
	Repair   bool // count one more replacement, and the replaced voter, with the step
	Recovery RecoveryNote
}
