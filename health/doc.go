// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package health decides whether this machine is fit to run an etcd member. Readings become evidence, and evidence
// becomes one of seven states. Each state comes with what was measured, the limit, and a remedy.
//
// Promises:
//
//   - It is pure: no clock, no I/O, no goroutines. The same inputs yield the same states. Time is a number in [Input].
//   - Missing data is neither healthy nor failed. UNKNOWN lasts until there are enough samples, and returns when OK,
//     WARM or QUALIFYING outlive their data. SLOW, STALLED and FAILED stay, because missing data is no
//     recovery.
//   - States get worse fast and better slowly. A recovery that a [Rule] marks as a return doubles the time of the next
//     one, up to 4 h, and is forgotten after 24 h.
//   - A hanging write is judged by its age, a completed write by its latency.
//   - The disk is not blamed for CPU starvation: contaminated samples are discarded, and many of them make the machine
//     WARM.
//   - A disk is Qualified only after a qualifying run over writes like etcd's, and only while it stays OK or WARM.
//   - A disk leaves FAILED after a full qualifying run without an error, if etcd has been restarted since the last
//     error or is not running. [Judge.Reset] ends FAILED at once, and so does a reboot if [Judge.Snapshot] is kept in a
//     directory that a reboot empties.
//
// Package policy decides what a state permits.
//
// A check is declared in one file and listed in declarations. Most checks are of type advice: the code with its texts,
// the limit, and how it is measured (grows, exceeds, lists or errorCounts). oom_kills.go is the shortest example. A
// check that has several findings, or one with a state other than WARM, is a declaration with evidence of its own,
// which reads an [Input] and holds the rules: the transitions between its states, each with its condition as text. Add
// what the check reads to Input, and read it in package sensors or in a package of its own below health. Combining,
// hiding, hysteresis, snapshots, findings, changes and metrics need no code. The tests fail until their fixtures have
// the new figure, for example wellMachine, someMachine and machineEdges here, and kernel in sensors. These commands
// rewrite the golden lists, including quorumd-checks(7):
//
//	go test ./health ./health/kernellog ./agent/journalcatalog -update
//	go test ./contrib/prometheus ./contrib/faults ./cmd/quorumctl -update
//
// Only a check that etcd's safety depends on is vital: without data its state becomes UNKNOWN, unless it is SLOW or
// worse. Any other check is optional: without a reading it is not available and ignored, unless its last finding was
// SLOW or worse. That finding stays until the next reading, unless a rule of the check ends it earlier, as for external
// checks, which may never report again.
package health
