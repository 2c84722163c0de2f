// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package sim runs whole agents in virtual time: it simulates hours of faults in a cluster within seconds. Each host
// runs the real agent with its loop, lock, host record, history, policy, health and requests; only the agent's
// environment is simulated. It promises:
//
//   - A run depends on its seed alone: the same seed yields the same events, to the nanosecond, on any machine. No two
//     goroutines act at the same moment (see lane), so their order never depends on the scheduler. Work that an agent
//     does outside its loop takes virtual time, so the loop sees the result in the same round in every run.
//   - The promises of the design are checked against the true state of the world, not against the agents' views: at
//     every write that etcd applies, every step, membership change, start, stop and leadership transfer. A run also
//     checks that, after the faults have ended, the cluster reaches its target within a bounded time, and no operation
//     or request remains.
//   - It detects violations: it finds every mistake in a table of seeded mistakes (mistake.go).
//
// Run must be called in a testing/synctest bubble, so tests call it: `make sim` runs many seeds, and `make sim SEED=42`
// prints the events of one run.
//
// What is simulated:
//
//   - etcd (etcd.go, keyspace, members.go): a store with revisions, transactions and leases, the member list with
//     learners, an elected leader with a quorum, the indices of learners, and the checks that etcd makes when it
//     receives and when it applies a change. All of this follows measurements of real etcd. Raft itself is assumed to
//     be correct: there is one log. A leader change restarts every lease. Otherwise a lease expires at the first
//     possible moment, sooner than in real etcd.
//   - Connections (client.go, transport.go, network.go): agents use the real client of package cluster, with its
//     choice of endpoints, order and timeouts; the world only carries its requests. Links are cut in one or both
//     directions, requests and answers are lost or slow, and a write may be applied minutes after its caller has timed
//     out.
//   - Agents (host.go): they are killed, restarted cleanly, or frozen, at any time or inside a chosen call. No virtual
//     time passes between two calls of an agent, so a kill or freeze at any other line would have the same effect. A
//     frozen agent may still send its pending request.
//   - Hosts that die for good, in a third of the clusters with a spare host (repair.go): agents replace dead voters.
//     Only in these clusters, and in those with changed peer URLs, do agents probe the members' ports and read etcd's
//     metrics (port_probes.go).
//   - Hosts: a power loss takes everything that is not durable, and the runtime directory. Wall clocks are set. Disks
//     (disk.go) are warm, slow, hanging, failing, full or not measured; the real health package judges them. The etcd
//     unit (unit.go) behaves like systemd and etcd.
//   - Disks of voters that become slow for a long time or for good, also in etcd's own metrics, in half of the
//     clusters in which hosts die for good (unhealthy.go): agents replace unhealthy voters.
//   - Quorum loss, in a quarter of the clusters (quorum_loss.go): disks are lost, and one voter that was believed lost
//     may return with its data at any time. Operators (disaster_recovery.go) collect facts, make a plan, apply it to
//     the hosts in any order, abandon it and make another, while agents are killed and hosts lose power. Copying the
//     survivor's data (survivor.go) takes time, may fail, and may be interrupted while the copy is put in place. Two
//     clusters then exist, which must never both serve.
//   - Operators (operator.go, maintenance.go): they pause and resume, request a second bootstrap, stop etcd, remove
//     members, release operations, and request and cancel maintenance, restarts, reboots, commands and rollouts. In a
//     third of the clusters without quorum loss, some maintenance is interruptible (recall.go).
//   - Another client that deletes or forges quorumd's records, in a third of the clusters (intruder.go).
//   - Data of voters that becomes corrupt, in half of the clusters that replace unhealthy voters and do not lose their
//     quorum (corrupt.go).
//   - Operators that resize the cluster and retire hosts, in a third of the clusters without quorum loss (resize.go):
//     hosts join and voters leave, among all other faults. Another client overwrites the recorded size.
//   - Operators that change peer URLs, in a third of the clusters without quorum loss (readdress.go): sometimes a
//     firewall drops the connections to a new URL, another voter fails meanwhile, or the operators restore the old URL.
//     Two members exchange messages if either of them reaches the other's registered URL. A connection survives a
//     change of the URL until one of the two is restarted.
//   - External etcds (external.go), in separate runs with their own random numbers: kubelets start them, operators
//     stop them while a host is reported safe to stop, and no agent does either.
//
// Not simulated: fleets so large that hosts poll less often (the tests of package agent cover them, also in virtual
// time: `make sim-fleet`); maintenance hooks; agent files that hang with the disk; mixed etcd versions; data loss of
// voters outside quorum loss, and a survivor that lacks acknowledged writes; recovery from a snapshot; clock drift;
// changed client URLs, and https between members; duplicate names and URLs. Tests with real processes cover TLS, the
// socket, metrics and real timings.
package sim
