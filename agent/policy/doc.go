// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package policy decides what a host does next.
//
// Decide is a pure function: it reads a View, which is everything that the agent has observed,
// and gives at most one Step and the reasons why nothing more is done. It knows no clock, no
// I/O and no state of its own, so the same function runs in production, in observe mode, in
// simulation and in exhaustive exploration, and after a crash it goes on from what it sees.
//
// The package promises:
//
//   - total: every View gets a decision, with a Step or at least one Reason;
//   - deterministic: equal Views get equal decisions, and hosts that see the same candidates
//     rank them alike;
//   - unknown is neither healthy nor failed: a value that is missing or too old never adds,
//     promotes or removes a member;
//   - the arithmetic of quorums stands in quorum.go and nowhere else.
//
// Steps and reasons are declared as data, in step.go and reason.go. A Step is small: it starts
// something within seconds, and the next Views show how it goes.
//
// Package model explores Decide exhaustively, and what it covers binds whoever changes this package: every Step and
// Reason that stands in this source must be listed in its known.go with how it is modelled, or a test fails; one that
// is said to be explored must be met. Covered are joins to voter and to standby, their roll-back and adoption, leftover
// learners and bootstrap, and hosts that are taken down for maintenance, a restart or a reboot and brought back, and
// members that people have removed, on two to five hosts, under crashes of agents, members and hosts, agents that are
// paused past their lock, partitions, verdicts and clocks that change, calls that land late or never, and what
// operators do; and of etcd what it accepts and refuses, for good or for a while, who votes and who serves, what
// becomes of one that starts or was removed, and what it commits. `make test-model-etcd` holds all of that against real
// members. Abstracted are: time (every duration is 0 or beyond its limit; a lease ends only after its holder's
// validity), the leader (only whether there is a quorum), raft's log (a learner is behind, near or steady, and follows
// or does not), and ranks (who goes first among equals is left open). A look sees the list, the records and the disk at
// one moment; presence ends with its agent; steps on the local unit and disk end at once, but for the calls of a cycle;
// one late write per agent is remembered; a record that comes and goes between look and step is missed only by a late
// call and a paused agent; nobody waits so long for its turn to join that it goes out of turn; no host rests
// (View.Resting) and no program was started just now (Hooks.Launched), which withholds steps and gives none, nor does a
// verdict come late from the host that it is of (Host.Answered, for which a voter waits that is ready to be stopped);
// and no step is taken on what is not of the same round. A call that stops etcd, moves its leadership or reboots the
// machine lands at any time while its agent lives, also long after its lock is gone, but has landed or never will when
// that agent's process has ended; one removal is asked for at a time, and a voter that does not answer when that is
// looked at has been silent for long; a reboot that was asked for comes at once or not at all; whoever is asked for a
// restart agrees that an etcd which somebody has stopped is started by it, until that restart is recorded as done; and
// nobody can tell who has stopped an etcd that this host's disk still says was stopped by its agent, unless the machine
// has since rebooted as it was asked to. Constant are versions, space, qualification, unique names, one cluster, data
// that can be read, a voter's log that is level once it serves, that no hooks are installed, and that a finding gates
// all that a finding can.
package policy
