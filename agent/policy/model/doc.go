// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package model explores the real policy.Decide exhaustively: in a world of two to five hosts,
// every order of events that the model allows is walked through, breadth first and without
// chance, until there is no state more. It promises:
//
//   - What breaks a promise of the design within a scope is found, with the shortest story that
//     leads to it.
//   - From every state the agents come to rest at their target when the faults are healed and what was
//     asked is over, and free the operation of a join also when they are not. That of a host that was taken
//     down is its own to end.
//   - The exploration can fail: each of a table of seeded mistakes in the policy and in the
//     protocol of the lock is found, as the breach of the promise that it breaks; and there is one
//     for every promise, also where a lesser one breaks first, which is let pass then.
//   - Every step and every reason of the policy is listed in known.go with how it is modelled.
//   - What it says about etcd is what etcd does: every pair of a state of etcd and an operation that
//     an exploration meets, and every change that could be refused there, is tried on real members,
//     and so is every write under the lock; a table of lies shows that a difference is reported.
//
// A world (world.go) is a few bytes per host, with its agent, its unit, its data and its calls
// that are on their way, and a few for etcd: the lock, the operation, what time has passed. An
// agent's turn is cut where something may come between: it looks and decides; it confirms its
// lock and sends; the call lands and is answered, or lands late, or never. A write of the record
// is one transaction, so only its answer can be missing; a change of membership cannot be fenced,
// so it may land at any later time, with none but the checks that etcd makes when it applies it.
//
// A host that is asked to be taken down (asked.go, cycle.go) has that on its disk, with how far it is: that its
// operation was begun, that its etcd was stopped, and what holds that etcd back at a boot. Each of these is
// written before what it speaks of is done, and the agent may die between; so it may between what it does to a unit
// and what it notes of that. Which voter leads is open at every look, so that a move of leadership that lands late,
// or never, makes no difference to any later one. Who was asked first is open as well. The promises that these
// cycles must keep are held against the world as it is at the moment of the view, which is all that an agent can
// know: when a running etcd is told to stop, every other voter was live, well and known to be so at that view, the
// voters were odd and at least three, and unless a fault has come since, all the others run at that moment still
// and the operation is this host's.
//
// The program of a command is one that runs, and may end well or badly at any moment, from when it was started: the
// moment at which it begins is none of its own. One that runs when its machine goes down has failed, and one may be
// found to be missing. As long as it runs its etcd is not started, and as long as etcd runs it is not run.
//
// Whoever was taken out by a replacement (ejected.go) joins again after a while that is an event, and that a bad
// verdict or a cut begins anew, and its agent's death, after which it may be over at once; how long it is, and that it
// doubles, is no part of the model.
//
// What etcd answers to a change of membership stands in answer.go, and what becomes of an etcd that
// starts in start.go. Some answers no world decides: etcd calls a cluster unhealthy whose
// connections are younger than 5 s, a new leader takes a learner that it has not heard of for one
// that is not in sync, and a member that is added again within a second gets the ID that was
// removed. Such a refusal is an event of its own, and so is the end of an etcd that joins and is told
// an old list by the member that it asks first: one that is behind, or has just started itself. The
// tests with the tag realetcd compare all this with etcd 3.5 and 3.6, along a few thousand paths. What
// they leave out are the times (but for those of leases), one-way partitions, and other moments in
// which member lists differ. Two things that were seen stay outside of the model: an etcd that was
// removed before it was ever ready may run on, also when it is told to stop, until it is killed, as
// systemd does; and of two voters the one that stays, if killed at once, may start with the old list
// and wait for the other for ever (quorumd never removes a voter of two).
//
// What a host sees is a sight (sight.go), from which alone its View is made; the decision for a
// sight is asked of the policy once and remembered. Every duration in a View is either 0 or longer
// than every limit: which of the two is an event of its own. The one rule about time is that of
// the lock: its lease does not end at the server before the holder's validity has ended.
//
// A cluster that has lost its majority for good is a walk of its own (ruins.go), over worlds that know of which cluster
// each host's data are: hosts with new disks, and one that was taken for gone and comes back; people who make a plan of
// what they reach, have it obeyed in any order, give it up and make another; agents, etcds and hosts that crash at
// every moment, also between the parts of a step; and a healthy cluster for which somebody wants a plan. No agent takes
// a step there but by its plan or where a cluster goes on without it; no two clusters serve at once; and from every
// world everybody comes to be a voter again. What it takes for granted is that there are never enough old data for a
// quorum beside those that the survivor has parted with: a majority that comes back whole is for people to keep off.
//
// What nothing can read any more, or tell apart, a world forgets (forget.go), each with the reason why that hides
// nothing; and the policy is asked whether it decides alike. It is what brings a dead voter, its standby and a second
// fault of every class to their fixpoint: 6 million worlds.
//
// A rollout is a walk of its own, too (rolling.go), over worlds in which nobody joins or leaves: the rollout's record
// and that of the operation, the queue, and what each host's disk says of its turn, which is written beside the steps
// and may be lost between them. Agents die between the disk and the record and between the record and the disk; people
// pause, resume and abort, withdraw a host and release its operation; somebody deletes a record or writes the rollout
// over. At most one host is down for it at a time, each at most once between two starts of the rollout; one that is
// paused or over takes nobody down; the leader goes last; and it ends, or says why it stops.
//
// Hosts are interchangeable. Where hosts rank alike it is left open who goes first, so that
// worlds which differ only in which host is which are explored once.
package model
