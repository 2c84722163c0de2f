// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package network checks whether this host reaches the members of the cluster, on the ports that etcd itself uses, and
// how fast. It promises:
//
//   - Only the goroutines of [Prober.Run] wait for the network; callers get the last results.
//   - It only connects, and requests /version: any answer counts, even a refusal. No answer is trusted or kept, and at
//     most 256 KiB of it are read.
//   - There is at most one connection at a time to a port of a member, and there are at most [MostMembers] members.
//   - From time to time the request is larger than a packet, to detect a path that only passes small packets.
package network

import (
	"fmt"
	"time"
)

// MostMembers bounds the probed members. A cluster has at most 9 voters and a few learners.
const MostMembers = 16

// Member is a member of etcd's member list.
type Member struct {
	ID           uint64
	Name         string
	Peer, Client string // URLs; "" if there is none
}

// State is the state of a member's port, as seen from this host.
type State uint8

// The states of a port.
const (
	Unknown     State = iota // not probed often enough yet
	Answers                  // something comes back
	Refused                  // the host answers, and nothing listens on the port
	Unreachable              // no connection: no answer, or no route
	Silent                   // connections succeed, but no data comes back
	LargeLost                // small requests are answered, and large ones are not
)

func stateNames() []string {
	return []string{"unknown", "answers", "refused", "unreachable", "silent", "large-lost"}
}

// String returns the state's name in records and documents.
func (s State) String() string {
	if names := stateNames(); int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("state %d", s)
}

// ParseState returns the state of that name, or Unknown for a name of a newer version.
func ParseState(name string) State {
	for i, known := range stateNames() {
		if name == known {
			return State(i)
		}
	}
	return Unknown
}

// Broken reports whether the network or the host behind it fails: if only the port is closed, the host was reached.
func (s State) Broken() bool { return s == Unreachable || s == Silent || s == LargeLost }

// Takes reports whether the port accepts connections, which it also does if the process behind it hangs.
func (s State) Takes() bool { return s == Answers || s == Silent || s == LargeLost }

// Way is the state of one port of a member.
type Way struct {
	State State
	// RTT is the time to connect, the median of the last ones; 0 if there was none.
	RTT time.Duration
	// Sent counts the TCP segments sent by answered probes, and Resent those sent again. Probes without an answer do
	// not count, as packet loss is not their only problem.
	Sent, Resent uint64
}

// Sight is what this host observes of a member.
type Sight struct {
	Member       uint64
	Name         string
	Peer, Client Way
	// Lost means that neither port has accepted a connection lately, each in several probes in a row. LostAt is when
	// the first of them began. One connection ends it.
	Lost   bool
	LostAt time.Duration
	// LookedAt is when the older of the last probes of both ports began; 0 if one was not or cannot be probed.
	LookedAt time.Duration
	// Missed means that the last probe of a port has made no connection. The first such probe in a row began at
	// MissedAt, on the port that began to fail later.
	Missed   bool
	MissedAt time.Duration
}
