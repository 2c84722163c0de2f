// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package policy decides what a host does next.
//
// Decide is a pure function: it takes a View, which holds everything that the agent has observed, and returns at most
// one Step, and the reasons why the host does nothing more. It has no clock, no I/O and no state of its own. Therefore
// the same function runs in production, in observe mode, in simulation and in exhaustive exploration, and after a crash
// it continues from the next View.
//
// The package promises:
//
//   - total: every View gets a decision, with a Step or at least one Reason;
//   - deterministic: equal Views get equal decisions, and hosts that observe the same candidates put them in the same
//     order;
//   - unknown is neither healthy nor failed: a missing or stale value never adds, promotes or removes a member;
//   - all quorum arithmetic is in quorum.go.
//
// Steps and reasons are declared as data, in step.go and reason.go. A Step is small: it starts something within
// seconds, and the next Views show its progress.
//
// Operators' requests go through this package as well. A function whose name begins with Against returns why a request
// is refused, and package operate reports the reason to the operator. maintenance_request.go decides how operators'
// calls and the agent's steps change a request to take a host down, and when the request is over. start_guard.go
// decides whether etcd may start by itself in the meantime. Package hoststate writes the results to disk.
//
// # What the model explores
//
// Package model explores Decide exhaustively, and must cover every change of this package: its coverage.go lists how
// each Step and Reason is modelled. A test fails if one is missing there, or is listed as explored and never reached.
// `make test-model-etcd` compares what the model assumes about etcd with real members.
//
// Covered, with two to five hosts:
//
//   - operations: joins as voter and as standby with their rollback and adoption, leftover learners, bootstrap,
//     requested removals, replacements of dead and unhealthy voters by a standby or spare, and hosts that are taken
//     down for maintenance, a restart or a reboot and brought back;
//   - faults: crashes of agents, members and hosts, agents that are paused for longer than their lock lasts,
//     partitions, changing health states and clocks, calls that take effect late or never, any action of an operator;
//   - etcd: which requests it accepts and refuses, permanently or for a while; which members vote and which serve; how
//     a member starts, and how a removed member starts; which writes it commits.
//
// Abstracted:
//
//   - time: every duration is 0 or beyond its limit, and a lease expires only after its holder no longer counts it as
//     valid;
//   - the leader: only whether there is a quorum; a separate exploration models the leader, and covers the interval at
//     which an unhealthy leader transfers leadership;
//   - raft's log: a learner is behind, near or steady, and follows the leader or does not;
//   - ranks: all orders of equally ranked hosts are explored.
//
// Simplified observations:
//
//   - one observation reads the member list, the records and the disk at the same moment, and no decision combines
//     observations of different rounds;
//   - only a late call or a paused agent misses a record that is written and deleted between observation and step;
//   - a host record expires with its agent;
//   - a voter that does not answer when its removal is decided has been silent for a long time;
//   - if a host's disk records that its agent has stopped etcd, the agent cannot detect that an operator has stopped
//     etcd since, unless the machine has rebooted as requested.
//
// Simplified effects:
//
//   - steps on the local unit and disk complete at once, except the calls of an operation that takes the host down;
//   - a call that stops etcd, transfers its leadership or reboots the machine takes effect at any time while its agent
//     lives, even long after the agent's lock has expired; when the agent's process ends, the call has taken effect or
//     never will;
//   - reports on a voter to be replaced may be stale until an operation requests new ones, but all agree; only one
//     voter at a time is dead or unhealthy; all evidence that a voter is unhealthy, apart from its health state,
//     appears and disappears together; a removal that is not answered in time takes effect before its operation ends,
//     or never;
//   - each agent has at most one late write, and one removal is requested at a time;
//   - a requested reboot happens at once or never;
//   - a restart request may start an etcd that an operator has stopped, until the disk records that restart as done.
//
// Left out, because they only withhold steps: resting hosts (View.Resting), a program that was started just now
// (Hooks.Launched), and a health state that is published late (a voter waits for Host.Answered before it stops its
// etcd). Also left out: a host that has waited too long for the hosts before it in the join queue, and joins first.
//
// A separate exploration covers recovery: two clusters and the origin of each host's data; plans that are made,
// applied, given up and made again; and a host that returns late. It is simplified: a join is one step, no host
// restores a snapshot (recovery_test.go explores that for one host), and every quorum of the old cluster's data
// includes the survivor's data.
//
// A separate exploration covers rollouts and the queue, in which no host joins or leaves. It leaves out hooks and
// programs; hosts that also have operators' requests; calls that take effect after their agent has moved on; and a
// spare that is powered off while the record of its operation is deleted, which no host can detect.
//
// Constant: versions, space, qualification, unique names, one cluster and readable data. No hooks are installed, a
// voter counts as caught up as soon as it serves, and every finding blocks all steps that findings can block.
package policy
