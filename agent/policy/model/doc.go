// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package model checks the real policy.Decide exhaustively. It explores every order of events in a cluster of two to
// five hosts, breadth first, until it finds no new state. It promises:
//
//   - Within a scope, it finds every violation of a promise of the design, with the shortest trace that leads to it.
//   - From every state, the agents reach their target and become idle after faults are healed and requests have
//     finished. Even if nothing is healed, every operation ends as long as there is a quorum and a voter's agent runs.
//     There are two exceptions: only the host itself or an operator ends an operation that takes the host down, and
//     only the operation's host ends a removal that may have been sent to etcd.
//   - The exploration detects violations: a table lists mistakes seeded into the policy and the lock protocol, at least
//     one for each promise. The model finds each of them as a violation of the promise that it breaks. If a mistake
//     breaks a different promise first, the model ignores that violation.
//   - coverage.go lists how every step and every reason of the policy is modelled.
//   - The model of etcd matches etcd. Real members run every pair of an etcd state and an operation that an exploration
//     reaches, every change that etcd could reject there, and every write under the lock. A table of false claims shows
//     that the comparison reports differences.
//
// # Worlds and rounds
//
// A state of the model is a world (world.go). It takes a few bytes per host (agent, unit, data and calls in flight) and
// a few more for etcd (lock, operation and elapsed times). An agent's round is split wherever a different event can
// intervene: the agent observes and decides; it confirms its lock and sends the call; the call is applied and answered,
// applied late, or lost. A write of the operation record is one transaction, so only its answer can be lost. A
// transaction cannot fence a membership change, so etcd may apply the change at any later time, subject only to etcd's
// checks at that time.
//
// A host's view is built only from an observation (view.go). The policy decides once for each observation and each rank
// of the deciding host, and the decisions are cached. Every duration in a view is either 0 or longer than every limit
// or, if a decision has two limits, between them. An event changes a duration from one of these values to the next.
// There are only two rules about time. The lock's lease does not expire at the server before the holder's validity has
// ended. And where the policy waits for the lock's TTL so that no removal can be applied any more, that wait does not
// end while one still can.
//
// # Host operations
//
// The host records its request and its progress on disk (request.go, cycle.go): operation begun, etcd stopped, start
// guard set. It writes each of these before it acts. The agent may crash in between, and also between an action on a
// unit and the record of its result. Any voter may lead in any view, so a leadership transfer that is applied late or
// never makes no difference. Requests are explored in every order. Promises are checked against the world at the time
// of the view, because an agent decides from its view alone. If an agent stops a running etcd, its view showed every
// other voter live and healthy, and an odd number of at least three voters. Unless a fault has occurred since, all
// other voters still run and the operation belongs to this host.
//
// The program of a command may succeed or fail at any time after its start, fails if its machine goes down, and may be
// missing. Etcd does not start while the program runs, and the program does not start while etcd runs.
//
// An operator resizes the cluster at any moment, and may resize it back (resize.go). A voter leaves only while all
// others are reported healthy and there are more voters than the size. The leader never leaves. The operation ends even
// if the agent of the leaving host is gone. A host that joins although the new size leaves no place for it leaves
// again. Operators also retire a host and undo the retirement. A different host joins before a retired voter leaves, no
// other voter leaves instead, and the retired host does not join. In some scopes, operators name the host that joins,
// and can name a different one later. In these scopes, no other host joins, even while the named one is unhealthy or
// its agent is gone.
//
// An ejected host (ejected.go) may join again after its agent has observed it as healthy for a while; the end of that
// time is an event. An unhealthy state, a cut connection or the agent's death restarts that time. The model leaves out
// the length of that time, and that it doubles with every ejection.
//
// # Etcd
//
// etcd_answer.go models etcd's answers to a membership change, and etcd_start.go how etcd starts. Some answers depend
// on facts that no world contains: etcd reports a cluster as unhealthy while connections are younger than 5 s; a new
// leader treats a learner that it has not contacted as not in sync; a member that is added again within a second gets
// the removed ID. Such a rejection is an event of its own. So is the exit of a joining etcd that received an outdated
// member list from a member that lags or has just started. The tests with the tag realetcd compare all this with etcd
// 3.5 and 3.6 along a few thousand paths. They leave out times (except those of leases), one-way partitions, and most
// moments at which member lists differ.
//
// Two observed behaviours of etcd are not modelled. An etcd that was removed before it was ever ready may keep running,
// even after a request to stop, until systemd kills it. And if one of two voters is removed and the other is killed at
// once, the killed one may start with the old list and wait for the removed member forever. quorumd removes one of two
// voters only on an operator's request: a resize to one, which requires a recent snapshot unless the operator waives
// it, or the removal of that member.
//
// # Quorum loss
//
// Quorum loss is explored separately (quorum_loss.go), in worlds that track the cluster of each host's data. Hosts have
// new disks, or return after they were considered lost. Operators plan from the hosts that they reach, apply plans in
// any order, abort them and make new ones, even for a healthy cluster. Agents, etcds and hosts crash at every moment.
// An agent acts only by its plan or, without one, in a cluster that serves. Two clusters never serve at once, and from
// every world every host can become a voter again. The model assumes that the old data on all hosts but the survivor is
// too little for a quorum. Operators must not let a majority return with its old data.
//
// # Rollouts
//
// Rollouts are also explored separately (rollout.go), in worlds without joins and removals. A world has the records of
// the rollout and the operation, the queue, and each host's record on disk. The record on disk is written separately
// from the steps, and a crash can prevent the write. Agents crash between the writes to disk and to etcd, in both
// orders. Operators pause, resume and abort, cancel a host and release its operation; records are deleted or
// overwritten. The rollout takes down at most one host at a time, and each host at most once unless an operator resumes
// it. A paused or finished rollout takes down no host, the leader comes last, and the rollout ends or reports why it
// stopped.
//
// # Reductions
//
// A world drops what no decision, event or check can distinguish any more (reduction.go). Each reduction states why it
// hides nothing, and a test checks that the policy decides the same. The reductions make it possible to explore a dead
// voter, its standby and a second fault of every class completely, which takes 6 million worlds.
//
// Hosts are interchangeable, so they are sorted, and worlds that differ only in the order of their hosts usually count
// as one. Hosts that compare as equal keep their order, which costs duplicates but hides nothing.
package model
