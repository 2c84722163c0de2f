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
// What a person asks for goes through this package, too. A function that begins with Against says why it is refused,
// and package operate tells that. A request to take a host down is a Standing: request_over.go says when it is over,
// request_moves.go what becomes of it with every call and step, as when etcd is stopped for it, request.go when it is
// forgotten, start_guard.go whether etcd may start by itself meanwhile. Package hoststate writes all that to the disk.
//
// # What the model explores
//
// Package model explores Decide exhaustively, and what it covers binds whoever changes this package: every Step and
// Reason in this source must be listed in its known.go with how it is modelled, or a test fails; one that is said to be
// explored must be met. `make test-model-etcd` holds what the model says about etcd against real members.
//
// Covered, on two to five hosts:
//
//   - operations: joins to voter and to standby with their roll-back and adoption, leftover learners, bootstrap,
//     removals that people have asked for, dead and sick voters whose place a standby or spare takes, and hosts that
//     are taken down for maintenance, a restart or a reboot and brought back;
//   - faults: crashes of agents, members and hosts, agents that are paused past their lock, partitions, verdicts and
//     clocks that change, calls that land late or never, and whatever operators do;
//   - etcd: what it accepts and refuses, for good or for a while; who votes and who serves; what becomes of a member
//     that starts or was removed; what it commits.
//
// Abstracted:
//
//   - time: every duration is 0 or beyond its limit, and a lease ends only after its holder's validity;
//   - the leader: only whether there is a quorum; how often one that is not well hands over is a walk of its own, which
//     knows who leads;
//   - raft's log: a learner is behind, near or steady, and follows or does not;
//   - ranks: who goes first among equals is left open.
//
// Simplified, of what a host sees:
//
//   - a look sees the list, the records and the disk at one moment, and no step is taken on what is not of the same
//     round;
//   - a record that comes and goes between look and step is missed only by a late call and by a paused agent;
//   - presence ends with its agent;
//   - a voter that does not answer when its removal is looked at has been silent for long;
//   - nobody can tell who stopped an etcd that this host's disk still says its agent stopped, unless the machine has
//     since rebooted as it was asked to.
//
// Simplified, of what a host does:
//
//   - steps on the local unit and disk end at once, but for the calls of a cycle;
//   - a call that stops etcd, moves its leadership or reboots the machine lands at any time while its agent lives, also
//     long after its lock is gone; once that agent's process has ended it has landed or never will;
//   - of a voter that is replaced what the others say may be old until they are asked anew, but all say the same; one
//     is called dead or sick at a time; what speaks against a sick one beside its verdict is one thing, which comes and
//     goes; and a removal that is not answered in time lands before it is given up, or never;
//   - one late write per agent is remembered, and one removal is asked for at a time;
//   - a reboot that was asked for comes at once or not at all;
//   - whoever asks for a restart agrees that it starts an etcd which somebody has stopped, until that restart is
//     recorded as done.
//
// Left out, because it withholds steps and gives none: hosts that rest (View.Resting), a program that was started just
// now (Hooks.Launched), and a verdict that comes late from the host that it is of (Host.Answered, where a voter waits
// for it that is ready to be stopped). Nobody waits so long for its turn to join that it goes out of turn.
//
// A cluster under recovery has a walk of its own there: two clusters and whose data are of which, plans that are made,
// obeyed, given up and made anew, and a host that comes late. What that leaves out: a join is one step there, nobody
// goes on with a snapshot (recovery_test.go explores that, for one host), and the old cluster never has a quorum of
// data left without the survivor's.
//
// Rollouts and the queue have a walk of their own, in which nobody joins or leaves. What that leaves out: hooks and
// programs; hosts that were asked by people besides; calls that land after their agent has gone on; and a spare that is
// off while the record of its turn is deleted, of which nobody can know.
//
// Constant: versions, space, qualification, unique names, one cluster, data that can be read, a voter's log that is
// level once it serves, no hooks installed, and a finding that gates all that a finding can.
package policy
