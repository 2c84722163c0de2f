// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	"github.com/quorumd/quorumd/health"
)

// View is everything that one host has observed when it decides. It does not change once made. Durations are measured
// with the observing host's monotonic clock; an observed duration counts from when this agent first saw it, so that an
// agent that has just started waits longer rather than shorter.
type View struct {
	Self                Self
	Target              Target
	Limits              Limits
	Unit                Unit
	Data                Data
	Health              Health
	Clock               Clock
	Bootstrap           Bootstrap
	BootstrapAttempt    BootstrapAttempt
	Cluster             Cluster
	Hosts               []Host // present hosts, this one among them, by ID
	Lock                Lock
	Recovery            *Recovery           // the recovery of the cluster, if there is a plan for this host, or nil
	CopiedFor           time.Duration       // since copying the survivor's data last began; Never if it did not
	Asked               *Asked              // this host's request, or nil
	Removal             *Removal            // the member that this host is to remove, or nil
	Op                  *Op                 // the operation in flight, or nil
	Pause               *Pause              // the pause in force, or nil
	Rollout             *Rollout            // the last one, or nil
	Queue               *Queue              // the one in etcd, or nil
	Backup              Backup              // the cluster's snapshots
	Spool               Spool               // where this host tests restores
	Repairs             int                 // how many voters were replaced in the last day
	Ejections           Ejections           // of this host, when its member was replaced
	Unreadable          []Unreadable        // records in etcd that cannot be read: their content is unknown
	IdleFor             time.Duration       // since when no operation has been in flight
	PlaceFreeFor             time.Duration       // how long a place for this host has been free, without operation or lock
	Backoff             time.Duration       // until the next attempt, after a join that failed
	Stuck               string              // a step that was started and has not returned, or empty
	LeadershipTransfers LeadershipTransfers // of this host's leadership
	Led                 *View               // the view of this host's own member if it leads and should not, or nil
	Failed              FailedStep          // the step that failed in its last attempt, if any
	// Resting reports that this host is a spare and others go before it: the members' answers and Hosts may be older,
	// unless Looked reports that they are of this round. If a host does not rest, the members have answered in this
	// round; or, while all is quiet (see QuietRounds), in the round before.
	Resting, HostsFresh bool
	// PromotionPending reports that this agent requested a promotion so recently that it may still take effect,
	// whatever the answer.
	PromotionPending bool
}

// FailedStep is a step that failed in its last attempt.
type FailedStep struct {
	Kind   StepKind
	Text   string
	Denied bool // etcd's users and roles forbid it
	Full   bool // etcd rejects writes: its database is at its quota
}

// Mode is what an agent may do.
type Mode string

// The modes. A fresh install observes.
const (
	Observe Mode = "observe" // reports what it would do
	Manage  Mode = "manage"
)

// Self is the deciding host.
type Self struct {
	ID, Name string
	PeerURL  string
	Mode     Mode
	Etcd     Version // of the configured binary; zero if unknown
	Binary   string  // its path
	// Drives reports that this agent may start and stop this host's etcd: itself, or through the operator's hook.
	// Otherwise something else does, such as a kubelet.
	Drives   bool
	Conflict string // another host that claims our ID, name or peer URL; empty if there is none
	// From its own disk: the member this host was last known to be, that member's cluster, and the learner that is its
	// standby; 0 if there is none.
	MemberID, ClusterID, StandbyID uint64
	// LostID is the listed member that this host has given up, because its data is gone; 0 if there is none.
	LostID uint64
	// DataMount is where the file systems were mounted that held the member's data; empty if unknown.
	DataMount string
}

// Target is the configured size of the cluster.
type Target struct {
	Voters   int // odd
	Standbys int // 0 or 1
}

// Limits are the times and sizes of the policy, from the configuration.
type Limits struct {
	Settle        time.Duration // between membership changes
	Cooldown      time.Duration // after an operation
	PromoteStable time.Duration // a learner must be up for so long
	SteadyLag     time.Duration // and within PromoteLag for so long
	PromoteLag    uint64        // entries behind the leader
	LearnerStall  time.Duration // a learner without progress is removed
	LearnerMax    time.Duration // a join that lasts longer is rolled back
	OrphanGrace   time.Duration // an operation without its lock may be adopted
	// Word is how long a host takes to publish its health state while reads exceed their time.
	HealthDelay       time.Duration
	LockTTL    time.Duration
	StartRetry time.Duration // between two starts of a unit that failed
	// A leadership transfer that fails for so long is reported; also the time between two attempts to reboot.
	TransferTimeout  time.Duration
	TransferInterval time.Duration // between two leadership transfers from an unhealthy leader
	ReturnStable     time.Duration // how long a member that was taken down must have served again
	ReturnMax        time.Duration // one that has not come back by then is reported
	ReturnGiveUp     time.Duration // one whose disk has been FAILED for so long releases its operation; 0: never
	ClockOffset      time.Duration // a host whose clock is further off neither joins nor replaces a voter
	AllowUnsafe      bool          // etcd below the safe floor, or newer than tested, is accepted
	// DeadGrace is how long a voter must have been dead before another host replaces it; 0: none does.
	DeadGrace time.Duration
	// UnhealthyGrace is how long a voter must have been SLOW, by its own report and by evidence, before another host
	// replaces it; 0: none does.
	UnhealthyGrace time.Duration
	RepairsPerDay  int // without an operator
	// CleanFor is how long an ejected host must have been healthy before it joins again, doubled for each further
	// ejection; 0: it joins at once.
	CleanFor time.Duration
}

// UnitState is the state of the local etcd unit.
type UnitState string

// The states of the unit. The zero value is unknown.
const (
	UnitUnknown      UnitState = ""
	UnitMissing      UnitState = "missing"
	UnitInactive     UnitState = "inactive" // stopped cleanly, by quorumd or anyone else
	UnitActivating   UnitState = "activating"
	UnitActive       UnitState = "active"
	UnitDeactivating UnitState = "deactivating"
	UnitFailed       UnitState = "failed" // exited by itself
)

// Unit is the local etcd unit.
type Unit struct {
	State      UnitState
	Since      time.Duration // in this state, as observed by this agent
	Ran        bool          // it has run since the machine booted; also false if that is unknown
	EnvReady   bool          // its environment matches the current membership
	SinceStart time.Duration // since this agent last started it; Never if it has not
	Program    string        // the program it starts, if that is not the configured binary
	NotAtBoot  bool          // nothing starts it after a boot
	Detail     string        // for people
}

// Never is a duration that has not begun.
const Never = time.Duration(1<<63 - 1)

// DataState is what the data directory holds.
type DataState string

// The states of the data directory. The zero value is unknown.
const (
	DataUnknown    DataState = ""
	DataEmpty      DataState = "empty"      // absent, or without anything of etcd
	DataRemains    DataState = "remains"    // left by an etcd that exited before it was a member: no write-ahead log
	DataMember     DataState = "member"     // of the cluster and member named in Data
	DataUnreadable DataState = "unreadable" // it holds something that cannot be understood
)

// Data is the local data directory.
type Data struct {
	State     DataState
	ClusterID uint64
	MemberID  uint64
	Mount     string        // where its file systems are mounted; empty if unknown
	Age       time.Duration // since it was read
	Free      uint64        // bytes free on its file system
	FreeKnown bool
	Detail    string // for people
}

// unread reports that the data directory has not been read, and why, if known.
func (d Data) unread() string {
	if d.Detail == "" {
		return "the data directory has not been read yet"
	}
	return "the data directory has not been read yet: " + d.Detail
}

// Health is this host's health state.
type Health struct {
	State     health.State
	For       time.Duration // since when
	Ungated    health.Gate   // the steps that none of its findings blocks
	Qualified bool
	Hangs     bool // a write to the disk hangs now: a lock would not be renewed
	// SlowWrites reports that slow writes alone keep this host from leading.
	SlowWrites bool
	Writes     time.Duration // the mean of its writes now, the lower one of its windows; 0 if unknown
	Text       string        // with the measured number and its limit
}

// Clock compares this host's wall clock with the voters'.
type Clock struct {
	Known  bool
	Offset time.Duration
}

// Bootstrap is an operator's one-time request to create a new cluster.
type Bootstrap struct {
	Requested bool
	Decided   bool // the other listed hosts were asked, and none had a cluster or a request; or all had agreed before
	Done      bool // this host has belonged to a cluster: an empty disk does not make it new
	// Seen is a cluster that has ever answered this host, although the host is not its member; 0 if none has. That
	// cluster exists, even if it does not run now.
	LastCluster  uint64
	Listed bool // the cluster that answers lists this host
}

// Cluster is the etcd cluster.
type Cluster struct {
	Reachable  bool // the member list and the records were read linearizably in the last attempt
	Listed     bool // at least the member list was
	Fresh      bool // that attempt was in this round, and is not carried over from an earlier one
	ID         uint64
	ExpectedID uint64 // from the configuration or from this host's own past; 0 if unknown
	Members    []Member
	StableFor  time.Duration // since the member list last changed
	DBSize     uint64        // the largest database of a voter, bytes
	Error      string        // for people, when it is not reachable
	// Intact reports that no answering member raises the alarm CORRUPT, and Roomy that none raises NOSPACE.
	Intact, Roomy bool
	Alarms        string // for texts: which member has raised which
	// Led reports that this is the view of this host's own member, which leads: a voter is live if it follows. It
	// decides nothing but a leadership transfer.
	Led        bool
	Unread     bool     // and the last linearizable read failed
	OtherNames []string // cluster names of other hosts with records in this etcd; read while no member has ours
	Denied     bool     // it is unreachable because etcd's users and roles deny access
}

// Member is one member of the cluster with its own answer in this round.
type Member struct {
	ID      uint64
	Name    string // empty until it has started once
	PeerURL string
	Domain  string // its host's failure domain, as last reported; empty if unknown
	// NotedDomain is the failure domain recorded on this host's disk.
	NotedDomain string
	Learner     bool
	Live        bool // it answered when last asked; a voter also a linearizable read
	Leader      bool
	// ThinksLearner is the member's own report, which may lag behind the member list.
	ThinksLearner bool
	Version       Version
	Lag           uint64 // raft entries behind the leader
	LagKnown      bool
	RTT           time.Duration // of this host's last request to it; 0 if unknown
	Errors        bool          // it reports errors
	// Standby reports that a learner's own host calls it a standby, not one that is joining. This host reads its own
	// from its disk, whatever the operation's record holds.
	Standby    bool
	LiveFor    time.Duration // since when it has answered without a break
	SteadyFor  time.Duration // since when its lag has been within PromoteLag without a break
	StalledFor time.Duration // since when a learner's applied index has not moved, not counting pauses
	StillFor   time.Duration // since when it has not moved, counting pauses; 0 if it has in this round
	BehindFor  time.Duration // since when it has answered, and been more than PromoteLag behind, without a break
	DownFor    time.Duration // since when it has not answered
	Fsyncs     Fsyncs        // as read by this host itself; empty while its host does not call it unhealthy
	// AgentGoneFor is since when its host has had no agent. A record outlives its agent by its TTL, which is included.
	// 0 while there is one, or if unknown.
	AgentGoneFor time.Duration
}

// Role is what a host is in the cluster.
type Role string

// The roles: a standby is a learner kept caught up, a spare is no member.
const (
	RoleUnknown Role = "unknown"
	RoleVoter   Role = "voter"
	RoleStandby Role = "standby"
	RoleJoining Role = "joining"
	RoleSpare   Role = "spare"
)

// Host is what a host has published about itself.
type Host struct {
	ID, Name, Domain string
	PeerURL          string
	Role             Role
	Health           health.State
	Ungated           health.Gate // the steps that none of its findings blocks
	Qualified        bool
	Manage           bool
	P99              time.Duration // of its fsync, quantised; 0 if unknown
	Wants            Work          // its request; empty if there is none
	AskedAt          int64         // when, in milliseconds of its own wall clock
	Waiting          ReasonCode    // why it does not go next; empty if it is ready
	// Answered: its record was written after it had seen the operation's record in its present form; or, for this host
	// and its own replacement, it has probed since then.
	Answered bool
	InOperation     bool    // it is in an operation by its own disk, whatever etcd shows, and that was not released
	Own      bool    // the record is the deciding host's, written by its own agent
	Sees     []Sight // its reports on the other members, if it is a member or decides
	// MemberLostFor is since when it has reported that its own member can never come back; 0 if it does not.
	MemberLostFor  time.Duration
	UnhealthySince UnhealthySince // since when it reports that it harms the cluster
	// Recovers reports that it is SLOW or worse only by past values: its writes are fast again.
	Recovers bool
	// Strained reports that it was WARM or worse within CommonSpan because of its disk, CPU or network.
	Strained     bool
	RestoreTests RestoreTestAbility // whether it can test restores
	Stores       bool               // its configuration names a backup store
	Writes       Writes
}

// Writes is how long a host's writes take, by its own host record.
type Writes struct {
	Mean time.Duration // rounded up; 0 if unknown
	Age  time.Duration // since this agent first observed that measurement
}

// Lock is the lock as this host observes it.
type Lock struct {
	Known    bool
	Held     bool // a host holds it
	Mine     bool // and this agent does
	ValidFor time.Duration
	Holder   string // host ID
	Token    int64
}

// OpPhase is how far an operation has come, by its record. The next step depends on it and on what is observed:
// rollback is an intent that must survive a crash, down and back record whether etcd was stopped cleanly.
type OpPhase string

// The phases of a join, in order, and the way back.
const (
	PhaseBegun    OpPhase = "begun"
	PhaseAdded    OpPhase = "added"
	PhaseStarted  OpPhase = "started"
	PhasePromoted OpPhase = "promoted"
	PhaseRollback OpPhase = "rollback"
)

// The phases of a cycle, in order; it also begins with PhaseBegun.
const (
	PhaseReady OpPhase = "ready" // the hooks have run
	PhaseDown  OpPhase = "down"  // etcd is stopped, the machine may be touched
	PhaseBack  OpPhase = "back"  // etcd runs again
)

// PhaseRemoving is the phase of a removal that may have been sent to etcd: it may take effect at any time from then on.
// A removal also begins with PhaseBegun.
const PhaseRemoving OpPhase = "removing"

// KindJoin is the kind of operation that makes a spare a standby or voter.
const KindJoin = "join"

// KindCycle is the kind of operation that takes a host down and brings it back.
const KindCycle = "cycle"

// KindRemove is the kind of operation that removes a member for good on request. Its host is the one that received the
// request, not the member's.
const KindRemove = "remove"

// KindReplace is the kind of operation that replaces a dead or unhealthy voter: a join that names the member it
// replaces. Its host is the one that joins.
const KindReplace = "replace"

// Op is the operation in flight.
type Op struct {
	Kind        string
	Host        string // the host that is operated on, or that received the request to remove a member
	HostName    string
	Target      Role
	Phase       OpPhase
	Token       int64
	MemberID    uint64
	Replaces    uint64 // the member that is replaced
	PeerURL     string
	Reason      string
	Outcome     ReasonCode    // with which it is rolled back, by its record
	Overdue     bool          // it has exceeded its announced duration; that is only reported
	SameBoot    bool          // its host has not rebooted since it began; known only to its own host
	Restarted   bool          // etcd has been started since it began; known only to its own host
	Elapsed     time.Duration // since it began or was first seen by this agent
	OrphanedFor time.Duration // since when no lock backs it
	WrittenFor  time.Duration // since when its record is unchanged
}

// Pause is a pause of the whole cluster.
type Pause struct {
	By, Reason string
}
