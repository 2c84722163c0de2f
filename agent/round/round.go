// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package round is what one round of the loop has seen and decided: data that the packages below agent hand on.
// It asks nobody and writes nothing. Once a round is published nobody changes it.
package round

import (
	"time"

	"github.com/quorumd/quorumd/agent/datadir"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/systemd"
)

// Round is everything that one of them has seen and decided. It is not changed once it is published.
type Round struct {
	Number       uint64
	At           time.Duration
	Wall         time.Time
	View         policy.View
	Decision     policy.Decision
	ClusterState               // of etcd
	Led          *ClusterState // what this host's own member says, if it leads and should not; nil otherwise
	Unit         systemd.Status
	UnitErr      error
	Verdict      health.Assessment
	Plugins      []health.ExternalCheckReading // what the operator's own checks have said last
	Reading      disk.Reading
	Request      *hoststate.Request
	LastRequest  *hoststate.End      // how the one before has ended
	Removal      *hoststate.Removal  // that this host was asked for
	Recovery     *hoststate.Recovery // the plan that is in force on this host
	Copy         recovery.Copy       // of its data, for that
	Mutes        []health.Mute       // those that hold
	MutesOver    []health.MuteEnd
	Hung         int           // looks beside the loop that should have come back long ago
	Probed       time.Duration // when it was judged, by the probe's clock
	Bootstrap    *hoststate.BootstrapRequest
	Founding     []policy.BootstrapAnswer // of the other hosts that are to make the cluster
	Did          ActorState               // by this process, before this round
	// Environment is what etcd should be started with, as things are.
	Environment map[string]string
	Noted       hoststate.Noted
	Data        HostState[datadir.Contents]
	Binary      HostState[string] // the version of the local etcd
	Spool       HostState[policy.Spool]
	// Renewals are for how long the hosts without a member have not renewed their records, by host ID.
	Renewals HostState[map[string]time.Duration]
	Clock    HostState[time.Duration]
	Programs Programs
	// Fsyncs are those that the etcds of unhealthy voters count, by member ID, as this host has read them itself.
	Fsyncs      map[uint64]policy.Fsyncs
	FellSilent  bool            // a member has not answered that has in the round before
	SightEvery  time.Duration   // how often this host looks at a member
	Sights      []network.Sight // of the members, from this host
	Connections Connections     // that its etcd has to them
	AskedSince  time.Duration   // when the record was first seen that asks who is dead; 0 when none does
	Resting     bool            // others go before this host, so it looks seldom
	ViewedAt    time.Duration   // when the view was made
	// ReasonFor gives for how long each of the decision's reasons has stood.
	ReasonFor map[policy.ReasonCode]time.Duration
}

// Connections are those of this host's etcd to the other members: over which it has heard of the member lately.
type Connections struct {
	Known bool
	At    time.Duration // when it was asked
	Of    map[uint64]bool
}

// Fresh tells whether all that the round's step was decided on was seen in that round.
func (r *Round) Fresh() bool {
	if r.Decision.Step.Kind.Info().Led && r.Led != nil {
		return true
	}
	return r.EtcdAt == r.At && (!r.Reachable || (r.StatusesAt == r.At && r.HostsAt == r.At))
}

// Looked tells whether a round has seen the cluster anew, as far as it could.
func (r *Round) Looked() bool {
	return r.EtcdAt == r.At && (!r.Reachable || r.StatusesAt == r.At)
}

// OperationBegan gives when this host's operation began, for the others to know that it is in its turn; zero when it is
// not.
func (r *Round) OperationBegan() time.Time {
	if r.Request == nil || !r.Request.Seen || r.View.Asked.Released {
		return time.Time{}
	}
	return r.Request.Began
}

// Removes tells whether the operation in flight is a removal by that host.
func (r *Round) Removes(host string) bool {
	return r.Op.Of(host) && policy.Removes(r.Op.Kind)
}

// TakesDown tells whether the operation in flight takes that host down in order, and brings it back.
func (r *Round) TakesDown(host string) bool {
	return r.Op.Of(host) && policy.TakesDown(r.Op.Kind)
}

// Overdue tells whether that time is over; one that is zero never is.
func Overdue(until, now time.Time) bool { return !until.IsZero() && now.After(until) }

// Blink is for how many intervals a host may not look and still count what it saw before and after
// as one stretch.
const Blink = 5
