// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package round defines what one round of the loop has observed and decided, as data that the packages under agent
// exchange. It does no I/O. A published round is never changed.
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

// Round is everything that one round has observed and decided. It is not changed after it is published.
type Round struct {
	Number       uint64
	At           time.Duration
	Wall         time.Time
	View         policy.View
	Decision     policy.Decision
	ClusterState // what was read from etcd
	// the cluster state as read from this host's own member, if that member leads but should not; otherwise nil
	Led              *ClusterState
	Unit             systemd.Status
	UnitErr          error
	Assessment       health.Assessment
	ExternalChecks   []health.ExternalCheckReading // last results of the operator's own checks
	Reading          disk.Reading
	Request          *hoststate.Request
	LastRequest      *hoststate.End      // how the previous request ended
	Removal          *hoststate.Removal  // requested on this host
	Transfer         *hoststate.Transfer // requested on this host
	Recovery         *hoststate.Recovery // the plan in force on this host
	Copy             recovery.Copy       // progress of copying the survivor's data for the plan
	Mutes            []health.Mute       // the mutes in force
	MutesOver        []health.MuteEnd
	Hung             int           // number of background checks that are long overdue
	Probed           time.Duration // when the host's health was assessed, according to the probe's clock
	Bootstrap        *hoststate.BootstrapRequest
	BootstrapAnswers []policy.BootstrapAnswer // answers of the other hosts that bootstrap the cluster
	Did              ActorState               // what this process had done before this round
	// Environment is the environment that etcd should start with in the current state.
	Environment map[string]string
	Noted       hoststate.Noted
	Data        HostState[datadir.Contents]
	Binary      HostState[string] // the version of the local etcd
	NextEtcd    policy.NextEtcd   // what is known about etcd.nextBinary
	MaxLearners int               // limit on learners of the running local etcd; 0 if unknown
	PeerTLS     policy.PeerTLS    // whether the running local etcd has a peer certificate
	PeerFiles   policy.PeerFiles  // the state of the configured peer certificate's files
	NextLimit   NextLimit         // limit on learners of the next start of the local etcd
	Spool       HostState[policy.Spool]
	// Renewals maps the IDs of hosts without a member to how long ago they renewed their records.
	Renewals HostState[map[string]time.Duration]
	Clock    HostState[time.Duration]
	Programs Programs
	// Hashes is the last comparison of the voters' data, and Corrupt the voters whose data differs from that of a
	// majority, by member ID.
	Hashes  health.HashesReading
	Corrupt map[uint64]policy.Corruption
	// Fsyncs are the fsync metrics of unhealthy voters' etcds, by member ID, as this host has read them.
	Fsyncs      map[uint64]policy.Fsyncs
	FellSilent  bool              // a member that answered in the previous round did not answer in this one
	ProbeEvery  time.Duration     // interval of this host's probes of a member
	Probes      []network.Reading // what this host observes of the members
	Connections Connections       // connections of this host's etcd to the members
	AskedSince  time.Duration     // when this host first saw the record that asks about members; 0 if there is none
	// PeerRequests are this host's requests to the members that the operation in flight asks about.
	PeerRequests PeerRequests
	Resting      bool          // this host does not have to read etcd in every round, because other hosts act first
	ViewedAt     time.Duration // when the view was built
	// ReasonFor maps each of the decision's reasons to how long it has been present.
	ReasonFor map[policy.ReasonCode]time.Duration
}

// NextLimit is the number of learners to which etcd would limit the cluster after its next start, and where that is
// set; zero if unknown.
type NextLimit struct {
	Limit int
	From  string
}

// Connections are the members from which this host's etcd has received messages recently.
type Connections struct {
	Known bool
	At    time.Duration // when the connections were read
	Of    map[uint64]bool
	// Active are the members that this host's etcd reports as active peers.
	Active map[uint64]bool
}

// Fresh reports whether the round itself, not an earlier one, observed everything that its step is based on.
func (r *Round) Fresh() bool {
	if r.Decision.Step.Kind.Info().Led && r.Led != nil {
		return true
	}
	return r.EtcdAt == r.At && (!r.Reachable || (r.StatusesAt == r.At && r.HostsAt == r.At))
}

// Looked reports whether the round itself tried to read from etcd and, if etcd was reachable, read the members'
// statuses.
func (r *Round) Looked() bool {
	return r.EtcdAt == r.At && (!r.Reachable || r.StatusesAt == r.At)
}

// OperationBegan returns when this host's operation began, for its host record; zero if it has none in flight.
func (r *Round) OperationBegan() time.Time {
	if r.Request == nil || !r.Request.Seen || r.View.Asked.Released {
		return time.Time{}
	}
	return r.Request.Began
}

// Removes reports whether the given host is carrying out a removal.
func (r *Round) Removes(host string) bool {
	return r.Op.Of(host) && policy.Removes(r.Op.Kind)
}

// TakesDown reports whether the operation in flight shuts the given host's etcd down in an orderly way and brings it
// back.
func (r *Round) TakesDown(host string) bool {
	return r.Op.Of(host) && policy.TakesDown(r.Op.Kind)
}

// Overdue reports whether until has passed. A zero until is never overdue.
func Overdue(until, now time.Time) bool { return !until.IsZero() && now.After(until) }

// Blink is the maximum number of intervals between two observations of a condition that still counts as uninterrupted.
const Blink = 5
