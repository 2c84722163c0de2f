// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package round describes what one round of the loop has observed and decided: data that the packages below agent pass
// on. It does no I/O. A published round is never changed.
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

// Round is everything that one round has observed and decided. It is not changed once it is published.
type Round struct {
	Number           uint64
	At               time.Duration
	Wall             time.Time
	View             policy.View
	Decision         policy.Decision
	ClusterState                   // of etcd
	Led              *ClusterState // as seen by this host's own member, if it leads and should not; nil otherwise
	Unit             systemd.Status
	UnitErr          error
	Assessment       health.Assessment
	ExternalChecks   []health.ExternalCheckReading // last results of the operator's own checks
	Reading          disk.Reading
	Request          *hoststate.Request
	LastRequest      *hoststate.End      // how the previous request ended
	Removal          *hoststate.Removal  // requested on this host
	Recovery         *hoststate.Recovery // the plan in force on this host
	Copy             recovery.Copy       // of its data, for the plan
	Mutes            []health.Mute       // those in force
	MutesOver        []health.MuteEnd
	Hung             int           // background checks that are long overdue
	Probed           time.Duration // when it was judged, by the probe's clock
	Bootstrap        *hoststate.BootstrapRequest
	BootstrapAnswers []policy.BootstrapAnswer // of the other hosts that create the cluster
	Did              ActorState               // by this process, before this round
	// Environment is what etcd should start with, in the current state.
	Environment map[string]string
	Noted       hoststate.Noted
	Data        HostState[datadir.Contents]
	Binary      HostState[string] // the version of the local etcd
	Spool       HostState[policy.Spool]
	// Renewals maps the IDs of hosts without a member to how long ago they renewed their records.
	Renewals HostState[map[string]time.Duration]
	Clock    HostState[time.Duration]
	Programs Programs
	// Fsyncs are the counters of unhealthy voters' etcds, by member ID, as this host has read them.
	Fsyncs      map[uint64]policy.Fsyncs
	FellSilent  bool            // a member that answered in the previous round has not answered
	SightEvery  time.Duration   // how often this host checks a member
	Sights      []network.Sight // of the members, from this host
	Connections Connections     // of its etcd to the members
	AskedSince  time.Duration   // when the record that asks which members are dead was first seen; 0 if there is none
	Resting     bool            // other hosts act before this one, so it checks rarely
	ViewedAt    time.Duration   // when the view was made
	// ReasonFor maps each of the decision's reasons to how long it has been there.
	ReasonFor map[policy.ReasonCode]time.Duration
}

// Connections are the members from which this host's etcd has received messages recently.
type Connections struct {
	Known bool
	At    time.Duration // when it was read
	Of    map[uint64]bool
}

// Fresh reports whether everything that the round's step was decided on was observed in that round.
func (r *Round) Fresh() bool {
	if r.Decision.Step.Kind.Info().Led && r.Led != nil {
		return true
	}
	return r.EtcdAt == r.At && (!r.Reachable || (r.StatusesAt == r.At && r.HostsAt == r.At))
}

// Looked reports whether the round has read the cluster state again, as far as possible.
func (r *Round) Looked() bool {
	return r.EtcdAt == r.At && (!r.Reachable || r.StatusesAt == r.At)
}

// OperationBegan returns when this host's operation began, to publish that the host is in it; zero if it is in none.
func (r *Round) OperationBegan() time.Time {
	if r.Request == nil || !r.Request.Seen || r.View.Asked.Released {
		return time.Time{}
	}
	return r.Request.Began
}

// Removes reports whether the operation in flight is a removal by that host.
func (r *Round) Removes(host string) bool {
	return r.Op.Of(host) && policy.Removes(r.Op.Kind)
}

// TakesDown reports whether the operation in flight takes that host down in an orderly way, and brings it back.
func (r *Round) TakesDown(host string) bool {
	return r.Op.Of(host) && policy.TakesDown(r.Op.Kind)
}

// Overdue reports whether that time has passed; the zero time never has.
func Overdue(until, now time.Time) bool { return !until.IsZero() && now.After(until) }

// Blink is the number of intervals that a host may miss and still count its observations before and after as one
// stretch.
const Blink = 5
