// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package sim runs whole agents in virtual time. Several hosts of one cluster live through hours of faults in
// seconds. Each runs the real agent with its loop, lock, host record, history, policy, health and requests; only its
// surroundings are simulated. It promises:
//
//   - A run depends on its seed alone: the same seed yields the same story, to the nanosecond, on any machine. Every
//     event has a time of its own (world.go, lane), so the order never depends on the scheduler. Work of an agent
//     outside its loop takes some time, so the loop sees its result in the same round in every run.
//   - The promises of the design are checked against the world, not against what agents have seen: at every write
//     that etcd applies, every step, membership change, start, stop and leadership transfer. At the end, after the
//     faults have stopped, the target is reached within a bounded time and nothing is left over.
//   - It can fail: it finds every mistake in a table of seeded mistakes (mistake.go).
//
// Run must be called in a testing/synctest bubble, so a test calls it: make sim, and make sim SEED=42 for the story
// of one seed.
//
// What is simulated:
//
//   - etcd (etcd.go, keyspace, members.go): a store with revisions, transactions and leases, the member list with
//     learners, an elected leader with a quorum, the indices of learners, and the checks of etcd when it receives a
//     change and when it applies it, all as measured. Raft itself is assumed to be correct: there is one history. A
//     leader change restarts every lease. Otherwise a lease expires at the first possible moment, sooner than in real
//     etcd.
//   - Connections (client.go, wire.go, network.go): agents use the real client of package cluster, with its choice of
//     endpoints, order and timeouts; the world carries only what it sends. Links are cut in one or both directions,
//     requests and answers are lost or slow, and a write may be applied minutes after its caller has timed out.
//   - Agents (host.go): killed, restarted cleanly, or frozen, at any time or inside a chosen call. No virtual time
//     passes between two calls of an agent, so this covers every line. A frozen agent may still send its pending
//     request.
//   - Machines that die for good, in a third of the clusters with a spare host (repair.go): dead voters are replaced
//     without help at the end. Only there an agent's view of the members' ports and its etcd's connections
//     (sights.go) is simulated.
//   - Hosts: a power loss takes everything that is not durable, and the runtime directory. Wall clocks are set. Disks
//     (disk.go) are warm, slow, hanging, failing, full or not measured, and are judged by the real health package.
//     The etcd unit (unit.go) behaves like systemd and etcd.
//   - Disks of voters that become slow for a long time or for good, also in etcd's own metrics, in half of the
//     clusters in which machines die for good (unhealthy.go): unhealthy voters are replaced.
//   - Quorum loss, in a quarter of the clusters (majority.go): disks are lost, and one voter that counted as gone may
//     return with its data at any time. Operators (rescue.go) collect facts, make a plan, apply it in any order,
//     abort it and make another, while agents are killed and hosts lose power. Copying the survivor's data
//     (survivor.go) takes time, may fail, and may be interrupted while it is put in place. There are two clusters
//     then, which must never both serve.
//   - Operators (fault.go, maintenance.go): they pause and resume, request a second bootstrap, stop etcd, remove
//     members, release operations, and request and cancel maintenance, restarts, reboots, commands and rollouts.
//   - External etcds (external.go), in stories of their own with their own random numbers: kubelets start them,
//     operators stop them when a host is reported safe to stop, and no agent does either.
//
// What is left out: fleets so large that hosts poll less often (the tests of package agent cover them, also in
// virtual time: make sim-fleet); maintenance hooks; agent files that hang with the disk; mixed etcd versions; data
// loss of voters outside quorum loss, and a survivor that lacks acknowledged writes; recovery from a snapshot; clock
// drift; duplicate names and URLs. TLS, the socket, metrics and real timings are left to tests with real processes.
package sim
