// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package health tells whether this machine is fit to hold a member of etcd: readings become evidence, evidence becomes
// one of seven states, and each state says what was measured, against which limit, and what an operator does about it.
//
// What it promises:
//
//   - It is pure. No clock, no input or output, no goroutine: the same inputs give the same verdicts. Time is a number
//     in [Input].
//   - No data is neither healthy nor failed. UNKNOWN lasts until there are enough samples to tell, and comes back when
//     OK, WARM or QUALIFYING outlive their data. SLOW, STALLED and FAILED do not: a machine that is known to be bad
//     does not get better by falling silent.
//   - In fast, out slowly. Every return to a better state doubles the time the next one takes, up to 4 h; it is
//     forgotten after 24 h.
//   - A write that hangs is judged while it hangs, by its age; writes that came back, by their latency.
//   - The disk is not blamed for a lack of processor time: samples that fell into one are left out, and if they are
//     many the machine is WARM.
//   - A disk is Qualified only by a qualifying run over writes like etcd's, and only while it stays OK or WARM.
//   - FAILED of a disk is left by a whole qualifying run without an error, once etcd was started anew, and any FAILED
//     by [Judge.Reset]. Keeping [Judge.Snapshot] in a directory that a reboot empties makes a
//     reboot a second way.
//
// What a state permits is decided elsewhere.
//
// # Adding a check
//
// A check is one file with its test, and one line in declarations: what it is, see [Check]; its codes and what they
// mean; its evidence, which reads an [Input], has the rules, and says what was measured. The rules are the ways between
// its states with their conditions in words and numbers. Kills is the shortest example. Put what it reads into Input.
// Combining, hiding, hysteresis, snapshots, findings, changes and the metric of each finding come with it, and so do
// the golden lists, which `go test ./health ./agent/journalcatalog ./contrib/prometheus -update` writes, quorumd-checks(7)
// among them. What reads it stands in package sensors, or in a room of its own below health. The tests' machines say
// where a figure is missing in them: wellMachine, someMachine and machineEdges here, kernel in sensors.
//
// Only a check that etcd's safety hangs on is vital, and UNKNOWN without data. Any other is optional: while it cannot
// be read it is not available and counts for nothing, unless what it found last was SLOW or worse. That is so for ever,
// but for a plugin: nobody knows whether it will tell anything again.
package health
