// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package network checks whether this host can reach the members of the cluster on etcd's own ports, and measures the
// round-trip time. It promises:
//
//   - Only the goroutines of [Prober.Run] wait for the network; callers get the last results.
//   - A probe only connects and sends GET requests without secrets. Any answer to the request counts, even an error. A
//     probe reads at most 256 KiB of an answer, and discards it.
//   - There is at most one connection at a time to each port, and at most [MaxMembers] members are probed.
//   - Every minute, a request is larger than a packet, to detect a path that passes only small packets.
package network

import (
	"time"

	"github.com/quorumd/quorumd/agent/record"
)

// MaxMembers limits the probed members. A cluster has at most 9 voters and a few learners.
const MaxMembers = 16

// Member is a member of etcd's member list.
type Member struct {
	ID           uint64
	Name         string
	Peer, Client string // URLs; "" if the member has none
}

// Port is the state of one port of a member.
type Port struct {
	State record.PortState
	// RTT is the median of the last times to connect; 0 if no probe has connected.
	RTT time.Duration
	// Sent counts the TCP segments sent by answered probes, and Resent the retransmissions among them. A probe without
	// an answer does not count, because packet loss is only one possible reason for its retransmissions.
	Sent, Resent uint64
}

// Reading is what this host observes of a member.
type Reading struct {
	Member       uint64
	Name         string
	Peer, Client Port
	// Lost means that both ports have recently failed to accept a connection in several probes in a row. LostAt is when
	// the first such probe began, on the port that began to fail later. One connection ends this state.
	Lost   bool
	LostAt time.Duration
	// LookedAt is when the earlier of the two ports' last conclusive probes began; 0 unless both ports have had one.
	LookedAt time.Duration
	// Missed means that the last probe of at least one port did not connect. MissedAt is when the first such probe in a
	// row began, on the port that began to fail later.
	Missed   bool
	MissedAt time.Duration
}
