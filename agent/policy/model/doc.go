// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package model explores the real policy.Decide exhaustively. In a cluster of two to five hosts it walks through
// every order of events, breadth first, until there is no new state. It promises:
//
//   - It finds every violation of a promise of the design within a scope, with the shortest story that leads to it.
//   - From every state the agents reach their target and become idle once faults are healed and requests are
//     finished. They free the operation of a join even without that. The operation of a host that is down is ended by
//     that host.
//   - The exploration can fail: it finds every mistake in a table of mistakes seeded into the policy and the lock
//     protocol, as a violation of the promise that it breaks. Every promise has one. If a lesser promise breaks
//     first, that one is ignored.
//   - Every step and every reason of the policy is listed in coverage.go with how it is modelled.
//   - The model of etcd matches etcd: every pair of an etcd state and an operation that an exploration meets, every
//     change that etcd could reject there, and every write under the lock is tried on real members. A table of
//     false claims proves that differences are reported.
//
// A world (world.go) takes a few bytes per host: its agent, its unit, its data and its calls in flight. A few more
// describe etcd: the lock, the operation, and elapsed times. An agent's round is split where another event may come
// between: it looks and decides; it confirms its lock and sends; the call is applied and answered, applied late, or
// lost. A write of the record is one transaction, so only its answer can be lost. A membership change cannot be
// fenced: it may be applied at any later time, subject only to the checks of etcd at that time.
//
// Host operations (request.go, cycle.go): the host records its request on disk, and its progress: operation begun, etcd
// stopped, start guard set. Each record is written before the action. The agent may crash in between, and also
// between an action on a unit and the record of its result. Which voter leads is open in every view, so a leadership
// transfer that lands late or never makes no difference. The order of requests is open as well. The promises are
// checked against the world at the time of the view, which is all that an agent can know: when a running etcd is
// stopped, every other voter was live, healthy and known to be so in that view, and the voter count was odd and at
// least three. Unless a fault has occurred since, all others still run and the operation is this host's.
//
// The program of a command may succeed or fail at any time after its start, fails if its machine goes down, and may
// be missing. Etcd is not started while it runs, and it is not run while etcd runs.
//
// An ejected host (ejected.go) joins again after a while, which is an event. An unhealthy state or a cut restarts
// that time, and so does the agent's death, after which it may be over at once. Its length, and that it doubles, is
// not modelled.
//
// Etcd's answers to a membership change are in etcd_answer.go, and its behaviour at start in etcd_start.go. Some answers depend
// on what no world holds: etcd reports a cluster as unhealthy while connections are younger than 5 s; a new leader
// treats a learner without contact as not in sync; a member that is added again within a second gets the removed ID.
// Such a rejection is an event of its own. So is the exit of a joining etcd that received an outdated member list,
// from a member that is behind or has just started. The tests with the tag realetcd compare all this with etcd 3.5
// and 3.6 along a few thousand paths. They leave out times (except those of leases), one-way partitions, and other
// moments at which member lists differ. Two observations are not modelled. An etcd that was removed before it was
// ever ready may keep running, even after a stop, until it is killed, as systemd does. And of two voters the
// remaining one, if killed at once, may start with the old list and wait for the other forever; quorumd never removes
// one of two voters.
//
// A host's view is built from a sight (view.go) only. The policy is asked once per sight, and the decision is
// cached. Every duration in a View is either 0 or longer than every limit; which one is an event. The only rule about
// time is that of the lock: its lease does not expire at the server before the holder's validity has ended.
//
// Quorum loss is explored separately (quorum_loss.go), in worlds that track the cluster of each host's data: hosts with new
// disks, one that counted as gone and comes back, operators who plan from what they can reach, apply plans in any
// order, abort them and make new ones, crashes of agents, etcds and hosts at every moment, and a plan for a healthy
// cluster. No agent takes a step there except by its plan, or where a cluster continues without one. Two clusters
// never serve at once, and from every world every host can become a voter again. The model assumes that there is
// never enough old data for a quorum besides the data that the survivor replaced: operators must keep off a majority
// that returns intact.
//
// A world forgets what no one can read or tell apart any more (reduction.go), each with the reason why that hides
// nothing; the policy is checked to decide alike. This is what lets a dead voter, its standby and a second fault of
// every class be explored completely: 6 million worlds.
//
// Rollouts are explored separately, too (rollout.go), in worlds where no host joins or leaves: the records of the
// rollout and the operation, the queue, and each host's record on disk, which is written apart from the steps and may
// be lost in between. Agents crash between disk and record and between record and disk; operators pause, resume and
// abort, cancel a host and release its operation; records are deleted or overwritten. At most one host is down for
// the rollout at a time, each at most once between two starts. A paused or finished rollout takes no host down, the
// leader goes last, and the rollout ends or reports why it stopped.
//
// Hosts are interchangeable. If hosts rank alike, the order is open, so worlds that differ only in the names of their
// hosts are explored once.
package model
