// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package policy decides what a host does next.
//
// Decide is a pure function: it takes a View, which is everything that the agent has observed, and returns at most one
// Step and the reasons why nothing more is done. It has no clock, no I/O and no state of its own, so the same function
// runs in production, in observe mode, in simulation and in exhaustive exploration, and after a crash it continues from
// what it observes.
//
// The package promises:
//
//   - total: every View gets a decision, with a Step or at least one Reason;
//   - deterministic: equal Views get equal decisions, and hosts that observe the same candidates rank them alike;
//   - unknown is neither healthy nor failed: a missing or stale value never adds, promotes or removes a member;
//   - all quorum arithmetic is in quorum.go.
//
// Steps and reasons are declared as data, in step.go and reason.go. A Step is small: it starts something within
// seconds, and the next Views show its progress.
//
// Operators' requests go through this package as well. A function whose name begins with Against returns why a request
// is refused, and package operate reports that. A request to take a host down is a Request: request_over.go decides
// when it is over, request_moves.go how each call and step changes it, such as stopping etcd for it, request.go when it
// is dropped, and start_guard.go whether etcd may start by itself meanwhile. Package hoststate writes all that to disk.
//
// # What the model explores
//
// Package model explores Decide exhaustively, and its coverage binds every change of this package: each Step and Reason
// in this source must be listed in its known.go with how it is modelled, or a test fails; one listed as explored must
// be reached. `make test-model-etcd` checks what the model assumes about etcd against real members.
//
// Covered, on two to five hosts:
//
//   - operations: joins to voter and to standby with their rollback and adoption, leftover learners, bootstrap,
//     requested removals, replacements of dead and unhealthy voters by a standby or spare, and hosts that are taken
//     down for maintenance, a restart or a reboot and brought back;
//   - faults: crashes of agents, members and hosts, agents that are paused past their lock, partitions, health states
//     and clocks that change, calls that take effect late or never, and anything operators do;
//   - etcd: what it accepts and refuses, for good or for a while; who votes and who serves; what happens to a member
//     that starts or was removed; what it commits.
//
// Abstracted:
//
//   - time: every duration is 0 or beyond its limit, and a lease ends only after its holder's validity;
//   - the leader: only whether there is a quorum; how often an unhealthy leader transfers leadership is a walk of its
//     own, which models the leader;
//   - raft's log: a learner is behind, near or steady, and follows or does not;
//   - ranks: the order among equals is left open.
//
// Simplified, of what a host observes:
//
//   - one observation sees the list, the records and the disk at the same moment, and no step is taken on observations
//     of different rounds;
//   - only a late call and a paused agent miss a record that comes and goes between observation and step;
//   - a host record expires with its agent;
//   - a voter that does not answer when its removal is decided has been silent for long;
//   - no agent can tell who stopped an etcd that its disk still records as stopped by the agent, unless the machine has
//     since rebooted as requested.
//
// Simplified, of what a host does:
//
//   - steps on the local unit and disk end at once, except the calls of a cycle;
//   - a call that stops etcd, transfers its leadership or reboots the machine takes effect at any time while its agent
//     lives, even long after its lock is gone; once that agent's process has ended it has taken effect or never will;
//   - reports on a replaced voter may be stale until they are requested again, but all agree; one voter at a time is
//     dead or unhealthy; the evidence against an unhealthy one, apart from its health state, is one thing, which comes
//     and goes; and a removal that is not answered in time takes effect before it is given up, or never;
//   - one late write per agent is remembered, and one removal is requested at a time;
//   - a requested reboot happens at once or not at all;
//   - a request for a restart allows it to start an etcd that an operator has stopped, until that restart is recorded
//     as done.
//
// Left out, because they withhold steps and add none: hosts that rest (View.Resting), a program that was started just
// now (Hooks.Launched), and a health state that its host publishes late (Host.Answered, when a voter that is ready to
// be stopped waits for it). No host waits so long for its turn to join that it goes out of turn.
//
// A cluster under recovery has a walk of its own in the model: two clusters and the origin of each host's data, plans
// that are made, applied, given up and made again, and a host that comes late. It leaves out: a join is one step, no
// host restores a snapshot (recovery_test.go explores that, for one host), and the old cluster never has a quorum of
// data without the survivor's.
//
// Rollouts and the queue have a walk of their own, in which no host joins or leaves. It leaves out: hooks and programs;
// hosts with requests of operators as well; calls that take effect after their agent has moved on; and a spare that is
// off while the record of its operation is deleted, which no host can notice.
//
// Constant: versions, space, qualification, unique names, one cluster, data that can be read, a voter's log that is
// level once it serves, no hooks installed, and a finding that blocks all that a finding can.
package policy
