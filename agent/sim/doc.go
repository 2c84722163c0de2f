// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package sim runs whole agents in virtual time. Several hosts of one cluster live through hours
// of faults in seconds: on each runs the real agent, with its loop, lock, presence, history, policy,
// verdict and requests, and only what it is connected to is simulated. It promises:
//
//   - What happens follows from a seed alone: the same seed gives the same story, to the nanosecond,
//     on any machine. Everything that happens has a moment of its own (world.go, lane), so that the
//     order of things never depends on the scheduler. What an agent does beside its loop takes time, if only
//     a moment, so that the loop sees it in the same round whenever the seed is played.
//   - The promises of the design are checked against the truth of the world, not against what the
//     agents have seen, at every write that etcd applies, every step, every change of membership,
//     every start, stop and move, and at the end: when the faults have stopped, the target is reached
//     within a bounded time, and nothing is left over.
//   - It can fail: every one of a table of seeded mistakes is found (mistake.go).
//
// Run must be called in a bubble of testing/synctest, so it is a test that does it: make sim, and
// make sim SEED=42 for the story of one seed.
//
// What is simulated:
//
//   - etcd (etcd.go, keyspace, members.go): a store with revisions, transactions and leases, the
//     member list with learners, an elected leader with a quorum, indices that learners follow, the
//     checks that etcd makes when it is asked for a change and those that it makes when it applies
//     one, all as measured. Raft itself is taken to be right: there is one history. A change of
//     leader gives every lease its full time again. A lease otherwise ends in the very moment it
//     may, which real etcd never does so quickly.
//   - The way there (client.go, wire.go, network.go): agents ask with the real client of package cluster, which
//     chooses whom, in what order and for how long; only what it would send is carried by the world. Links are cut one
//     way or both; requests and answers are lost or slow; a write may be applied minutes after its caller has given up.
//   - Agents (host.go): killed, restarted in order, or frozen, at any moment or in the middle of a
//     chosen call. Between two calls of an agent no virtual time passes, so that this is the same as
//     doing it at any line. A frozen agent may still send what it was about to send.
//   - Machines that die for good, in a third of the clusters that have a host to spare (repair.go): there dead
//     voters are replaced, and at the end nobody helps. What an agent sees of the members' ports, and what its etcd
//     tells of its connections (sights.go), is simulated there; elsewhere nobody looks.
//   - Hosts: a loss of power takes all that was not made durable, and the runtime directory. Wall
//     clocks are set. Disks (disk.go) are warm, slow, hanging, failing, full or not measured; the
//     verdict on them is the real one. The etcd unit (unit.go) behaves as systemd and etcd do.
//   - Disks of voters that turn slow for long or for good, as etcd's own count of its syncs says, too, in half of the
//     clusters in which machines die for good (sick.go): there sick voters are replaced.
//   - A majority that is lost for good, in a quarter of the clusters (majority.go): disks are, and one voter may be
//     taken for gone that comes back with its data, at any moment. People (rescue.go) ask for the facts, make a plan of
//     those that they get, have the hosts obey it in any order, give it up and make another, while agents are killed
//     and hosts lose their power. A copy of the survivor's data (survivor.go) takes time, fails, and may be cut short
//     when it takes its place; then there are two clusters, of which never both may serve.
//   - People (fault.go, maintenance.go): they pause and resume, ask to bootstrap again, stop etcd, remove
//     members, release operations, ask for maintenance, restarts, reboots, commands and rollouts, and take that back.
//   - Etcds that others run (external.go), in stories of their own, which draw from nothing that another draws from:
//     kubelets start them, people stop them where a host is said to be safe to touch, and no agent does either.
//
// What is left out: fleets so large that hosts rest (tests of package agent have them, also in virtual time: make
// sim-fleet); hooks around a maintenance; the agent's own files never hang with the disk; all etcds are of one version;
// the data of a voter vanish only where a majority is lost, and a survivor lacks nothing that was acknowledged; nobody
// recovers from a snapshot; clocks drift by nothing; hosts share no names or URLs. TLS, the socket, metrics and
// real timings are for the tests with real processes.
package sim
