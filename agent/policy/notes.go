// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Notes are what is to be written beside the step: what this host's disk is to say from now on, which is done beside
// the loop, since the disk may hang, and the queue in etcd.
type Notes struct {
	StartGuard       StartGuard
	Request          RequestNote
	Removal          RemovalNote
	Self             SelfNote
	Queue            QueueNote
	Backup           BackupNote
	Drill            RestoreTestNote
	BootstrapAttempt BootstrapNote

	// These go with the step, and are nothing without it.
	Join     JoinNote
	Repair   bool // one repair more is written with it, and whose place is taken
	Recovery RecoveryNote
}
