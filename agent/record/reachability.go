// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

import "time"

// PortState is the state of a member's port, as probed by a host. Any other state, from a newer version, counts as
// unknown.
type PortState string

// The states of a port.
const (
	PortUnknown     PortState = ""            // too few probes so far
	PortAnswers     PortState = "answers"     // data comes back through the connection
	PortRefused     PortState = "refused"     // the host is up, and nothing listens on the port
	PortUnreachable PortState = "unreachable" // no connection: no answer, or no route
	PortSilent      PortState = "silent"      // connections succeed, but no data comes back
	PortLargeLost   PortState = "large-lost"  // small requests are answered, but large ones are not
)

// Broken reports whether the network or the host fails. A refused connection does not count: the host was reached.
func (s PortState) Broken() bool {
	return s == PortUnreachable || s == PortSilent || s == PortLargeLost
}

// Accepts reports whether the port accepts connections, which it may do even if the process that listens hangs.
func (s PortState) Accepts() bool { return s == PortAnswers || s == PortSilent || s == PortLargeLost }

// Reachability is how a host reaches a member, in its host record and in the status.
type Reachability struct {
	MemberID MemberID `json:"memberID"` // hexadecimal, as etcdctl prints it
	// State of the member's peer port and of its client port: answers, refused, unreachable, silent or large-lost;
	// absent if unknown.
	Peer   PortState `json:"peer,omitempty" bound:"word"`
	Client PortState `json:"client,omitempty" bound:"word"`
	// seconds to connect, rounded up to 0.125 ms times a power of two; absent if there was no connection
	RTTSeconds float64 `json:"rttSeconds,omitempty"`
	// LostSince is the time since which both ports have failed several consecutive probes; absent if a port accepted a
	// connection, or if it is unknown whether one does. A refused connection counts as a failed probe: the machine is
	// up, but nothing listens there. A different time is a new report. Hosts that have a member or are about to get one
	// publish it immediately.
	LostSince time.Time `json:"lostSince,omitzero"`
	// Link is, for a lost member, whether the host's own etcd receives messages from it: up or none; absent
	// if unknown.
	Link string `json:"link,omitempty" bound:"word"`
	// Domain is, for a lost member, the last failure domain of its host that this host has observed itself.
	Domain string `json:"domain,omitempty"`
	// Learner is, for a lost permanent learner, the maximum number of learners that its etcd process allows, as this
	// host last read it, or -1 if that is unknown. Hosts that have never read the learner's host record rely on this
	// field.
	Learner int `json:"learner,omitempty"`
	// For is how long the host has reported the same LostSince and Link, as observed by the agent that read the record.
	// It is not stored.
	For time.Duration `json:"-"`
}

// The values of Link.
const (
	LinkUp   = "up"
	LinkNone = "none"
)

// Lost reports whether both ports have failed several consecutive probes.
func (r Reachability) Lost() bool { return !r.LostSince.IsZero() }

// Unsure reports whether the member's reachability is unknown: the member is not lost, but neither port is known to
// accept connections.
func (r Reachability) Unsure() bool { return !r.Lost() && !r.Peer.Accepts() && !r.Client.Accepts() }

// LinkKnown reports whether Link is known, because the host's etcd reports its connections.
func (r Reachability) LinkKnown() bool { return r.Link == LinkUp || r.Link == LinkNone }
