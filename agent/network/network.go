// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package network looks whether this host reaches the members of the cluster, on the ports that etcd itself uses, and
// how fast. It promises:
//
//   - Nothing here waits for the network but the goroutines of [Prober.Run]; whoever asks gets what was seen last.
//   - It only connects, and asks for /version: any answer counts, a refusal too. No answer is trusted or kept, and no
//     more than 256 KiB of one are read.
//   - There is at most one connection at a time to a port of a member, and there are at most [MostMembers] members.
//   - Now and then the question is larger than a packet: a way on which only small packets come through is told apart.
package network

import (
	"fmt"
	"time"
)

// MostMembers bounds the members that are looked at. A cluster has at most 9 voters and a few learners.
const MostMembers = 16

// Member is a member of the cluster, by what etcd's list says of it.
type Member struct {
	ID           uint64
	Name         string
	Peer, Client string // URLs; empty when there is none
}

// State is what a port of a member was found to be, as seen from here.
type State uint8

// The states of a way.
const (
	Unknown     State = iota // not looked at often enough yet
	Answers                  // something comes back
	Refused                  // the host is there, and nothing listens on the port
	Unreachable              // no connection: nothing comes back, or there is no route
	Silent                   // a connection is made, and nothing comes back on it
	LargeLost                // what fits into a small packet is answered, and more than that is not
)

func stateNames() []string {
	return []string{"unknown", "answers", "refused", "unreachable", "silent", "large-lost"}
}

// String gives the state's name in records and documents.
func (s State) String() string {
	if names := stateNames(); int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("state %d", s)
}

// ParseState gives the state with that name, and Unknown for a name that this version does not know.
func ParseState(name string) State {
	for i, known := range stateNames() {
		if name == known {
			return State(i)
		}
	}
	return Unknown
}

// Broken tells whether the network is at fault, or the host behind it: one on which only the port is closed is reached.
func (s State) Broken() bool { return s == Unreachable || s == Silent || s == LargeLost }

// Takes tells whether something takes connections there: what hangs behind it does so too.
func (s State) Takes() bool { return s == Answers || s == Silent || s == LargeLost }

// Way is what was seen of one port of a member.
type Way struct {
	State State
	// RTT is what it takes to make a connection, the median of the newest ones; 0 when there was none.
	RTT time.Duration
	// Sent are the segments of TCP that were sent to ask, and Resent those of them that were sent again, of all looks
	// that were answered: while nothing answers, more is wrong than that packets are lost.
	Sent, Resent uint64
}

// Sight is what this host sees of a member.
type Sight struct {
	Member       uint64
	Name         string
	Peer, Client Way
	// Lost: neither port has taken a connection lately, each in several looks in a row, of which the first began at
	// LostAt. One connection ends it.
	Lost   bool
	LostAt time.Duration
	// LookedAt is when the older of the last looks at both ports began; 0 when one was not looked at, or cannot be.
	LookedAt time.Duration
	// Missed: the last look at one of them has made no connection. The first of those in a row began at MissedAt, at
	// the port that has been missed more lately.
	Missed   bool
	MissedAt time.Duration
}
