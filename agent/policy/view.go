// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	"github.com/quorumd/quorumd/health"
)

// View is everything that one host has observed when it decides. It is not changed after it
// was made. Durations are measured by the observing host's own clock that does not jump; a
// duration of something that is observed counts from when this agent first saw it, so that an
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
	Recovery            *Recovery           // of the cluster, when there is a plan for this host, or nil
	CopiedFor           time.Duration       // since copying the survivor's data last began; Never if it did not
	Asked               *Asked              // what was asked of this host, or nil
	Removal             *Removal            // the member that this host was asked to remove, or nil
	Op                  *Op                 // the operation in flight, or nil
	Pause               *Pause              // the pause in force, or nil
	Rollout             *Rollout            // the last one, or nil
	Queue               *Queue              // the one that lies in etcd, or nil
	Backup              Backup              // the cluster's snapshots
	Spool               Spool               // where this host tests restores
	Repairs             int                 // so many voters were replaced in the last day
	Ejections           Ejections           // of this host, when its member was replaced
	Unreadable          []Unreadable        // records in etcd that cannot be read: their content is unknown
	IdleFor             time.Duration       // since when no operation has been in flight
	FreeFor             time.Duration       // how long a place for this host has been free, without operation or lock
	Backoff             time.Duration       // until the next try, after a join that failed
	Stuck               string              // a step that was started and has not come back, or empty
	LeadershipTransfers LeadershipTransfers // of this host's leadership
	Led                 *View               // the view of this host's own member if it leads and should not, or nil
	Failed              FailedStep          // the step that failed when it was last tried, if there is one
	// Resting tells that this host is a spare which others go before: the members' answers and Hosts
	// may be of a while ago, unless Looked says that they are of this round. Of a host that does not
	// rest the members have answered in this round; or, while all is quiet (see QuietRounds), in the round before.
	Resting, Looked bool
	// PromotionPending tells that this agent has asked for a promotion so short a time ago that it may
	// still land, whatever was answered.
	PromotionPending bool
}

// FailedStep is a step that failed when it was last tried.
type FailedStep struct {
	Kind   StepKind
	Text   string
	Denied bool // etcd's users and roles forbid it
	Full   bool // etcd takes no writes: its database is at its quota
}

// Mode says what an agent may do.
type Mode string

// The modes. A fresh install observes.
const (
	Observe Mode = "observe" // says what it would do
	Manage  Mode = "manage"
)

// Self is the deciding host.
type Self struct {
	ID, Name string
	PeerURL  string
	Mode     Mode
	Etcd     Version // of the binary that was asked; zero when unknown
	Binary   string  // its path
	// Drives tells that this agent may start and stop this host's etcd: itself, or through the operator's hook. Where
	// it does not, others do, such as a kubelet.
	Drives   bool
	Conflict string // another host that claims our ID, name or peer URL; empty when there is none
	// From its own disk: the member this host was last known to be, the cluster that this was in, and the learner as
	// which it is a standby; 0 when there is none.
	MemberID, ClusterID, StandbyID uint64
	// LostID is the listed member that this host has given up, because its data is gone; 0 when there is none.
	LostID uint64
	// DataMount is where the file systems were mounted that held the member's data; empty when it was never seen.
	DataMount string
}

// Target is what the cluster shall look like.
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
	// Word is how long a host takes to tell its verdict while reads outlast their time.
	Word       time.Duration
	LockTTL    time.Duration
	StartRetry time.Duration // between two starts of a unit that failed
	// leadership that cannot be moved for so long is reported; also between two tries to reboot
	HandOver     time.Duration
	GiveWay      time.Duration // between two times that a leader which is not well hands over
	ReturnStable time.Duration // a member that was taken down must have served again for so long
	ReturnMax    time.Duration // one that has not come back for so long is reported
	ReturnGiveUp time.Duration // one whose disk has been FAILED for so long gives its turn back; 0 when it never does
	ClockOffset  time.Duration // a host whose clock is further off joins not, and replaces nobody
	AllowUnsafe  bool          // etcd below the safe floor, or newer than tested, is accepted
	// DeadGrace is for how long a voter must have been dead before another takes its place; 0 when none does.
	DeadGrace time.Duration
	// SickGrace is for how long a voter must have been SLOW, by more than its own word, before another takes its
	// place; 0 when none does.
	SickGrace     time.Duration
	RepairsPerDay int // that need no person
	// CleanFor is for how long a host that was taken out must have been well before it joins again; twice as long for
	// each further time; 0 when it joins at once.
	CleanFor time.Duration
}

// UnitState is the state of the local etcd unit.
type UnitState string

// The states of the unit. The zero value means that it is not known.
const (
	UnitUnknown      UnitState = ""
	UnitMissing      UnitState = "missing"
	UnitInactive     UnitState = "inactive" // stopped in order, by us or by somebody
	UnitActivating   UnitState = "activating"
	UnitActive       UnitState = "active"
	UnitDeactivating UnitState = "deactivating"
	UnitFailed       UnitState = "failed" // ended on its own account
)

// Unit is the local etcd unit.
type Unit struct {
	State      UnitState
	Since      time.Duration // in this state, as seen by this agent
	Ran        bool          // it has run since the machine booted; false, too, when that is not known
	EnvReady   bool          // its environment is the one that the present membership asks for
	SinceStart time.Duration // since this agent last started it; Never when it has not
	Program    string        // what it starts, where that is another program than the binary that was asked
	NotAtBoot  bool          // nothing starts it after a boot
	Detail     string        // for people
}

// Never stands for a time that has not come.
const Never = time.Duration(1<<63 - 1)

// DataState says what lies in the data directory.
type DataState string

// The states of the data directory. The zero value means that it is not known.
const (
	DataUnknown    DataState = ""
	DataEmpty      DataState = "empty"      // absent, or with nothing of etcd in it
	DataRemains    DataState = "remains"    // of an etcd that ended before it was a member: no write-ahead log
	DataMember     DataState = "member"     // of the cluster and member named in Data
	DataUnreadable DataState = "unreadable" // something is there, but it cannot be understood
)

// Data is the local data directory.
type Data struct {
	State     DataState
	ClusterID uint64
	MemberID  uint64
	Mount     string        // where its file systems are mounted; empty when that is not known
	Age       time.Duration // since it was looked at
	Free      uint64        // bytes free on its file system
	FreeKnown bool
	Detail    string // for people
}

// unread says that the data directory has not been read, and why, where that is known.
func (d Data) unread() string {
	if d.Detail == "" {
		return "the data directory has not been read yet"
	}
	return "the data directory has not been read yet: " + d.Detail
}

// Health is this host's verdict.
type Health struct {
	State     health.State
	For       time.Duration // since when
	Spares    health.Gate   // what none of its findings keeps from happening
	Qualified bool
	Hangs     bool // a write to the disk hangs at this moment: a lock would not be renewed
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

// Bootstrap is the request to make a new cluster, which an operator gives once.
type Bootstrap struct {
	Requested bool
	Decided   bool // the other listed hosts were asked, and none had a cluster or a request; or all had agreed before
	Done      bool // this host has belonged to a cluster: an empty disk does not mean "new" any more
	// Seen is the cluster that has answered this host without its being a member, also long ago; 0 when none has.
	// There is one, then, even if nothing of it runs.
	Seen  uint64
	Lists bool // the cluster that answers lists this host
}

// Cluster is the etcd cluster.
type Cluster struct {
	Reachable  bool // the member list and the records were read, linearizably, when that was last tried
	Listed     bool // at least the member list was
	Fresh      bool // it was tried in this very round, and is not carried over from one before
	ID         uint64
	ExpectedID uint64 // from the configuration or from this host's own past; 0 when there is none
	Members    []Member
	StableFor  time.Duration // since the member list last changed
	DBSize     uint64        // the largest database of a voter, bytes
	Error      string        // for people, when it is not reachable
	// Intact tells that no member which answered names the alarm CORRUPT, and Roomy that none names NOSPACE.
	Intact, Roomy bool
	Alarms        string // for people: who has raised which
	// Led tells that this is the word of this host's own member, which leads: a voter is live that follows it. Nothing
	// is decided on it but whether it gives way.
	Led        bool
	Unread     bool     // and that what a quorum agrees on could not be read when that was last tried
	OtherNames []string // cluster names of other hosts with records in this etcd; read while no member has ours
	Denied     bool     // it is not reachable because etcd's users and roles forbid what was asked
}

// Member is one member of the cluster with its own answer to this round's questions.
type Member struct {
	ID      uint64
	Name    string // empty until it has started once
	PeerURL string
	Domain  string // of its host, as that was last heard of; empty when it is not known
	// NotedDomain is the one that this host's disk names.
	NotedDomain string
	Learner     bool
	Live        bool // it has answered when it was last asked; a voter also a linearizable read
	Leader      bool
	// ThinksLearner is the member's own word, which may lag behind the member list.
	ThinksLearner bool
	Version       Version
	Lag           uint64 // raft entries behind the leader
	LagKnown      bool
	RTT           time.Duration // of this host's last question to it; 0 when it is not known
	Errors        bool          // it reports errors
	// Standby tells of a learner that its own host calls it a standby, and no learner that is joining. This host knows
	// of its own from its disk, whatever the record of an operation says.
	Standby    bool
	LiveFor    time.Duration // since when it has answered without break
	SteadyFor  time.Duration // since when its lag has been within PromoteLag without break
	StalledFor time.Duration // since when a learner's applied index has not moved, but for pauses
	StillFor   time.Duration // since when it has not moved, pauses or not; 0 when it has in this round
	BehindFor  time.Duration // since when it has answered, and been more than PromoteLag behind, without break
	DownFor    time.Duration // since when it has not answered
	Fsyncs     Fsyncs        // as this host has read them itself; nothing while its host does not call it unhealthy
	// AgentGoneFor is since when no agent of its host has been there: a record outlives its agent by the presence TTL,
	// which is counted in. 0 while there is one, or when that is not known.
	AgentGoneFor time.Duration
}

// Role is what a host is to the cluster.
type Role string

// The roles: a standby is a learner kept caught up, a spare is no member.
const (
	RoleUnknown Role = "unknown"
	RoleVoter   Role = "voter"
	RoleStandby Role = "standby"
	RoleJoining Role = "joining"
	RoleSpare   Role = "spare"
)

// Host is what a host has published of itself.
type Host struct {
	ID, Name, Domain string
	PeerURL          string
	Role             Role
	Health           health.State
	Spares           health.Gate // what no finding of that verdict keeps from happening
	Qualified        bool
	Manage           bool
	P99              time.Duration // of its fsync, quantised; 0 when unknown
	Wants            Work          // what it was asked for; empty when it was not
	AskedAt          int64         // when, in milliseconds of its own wall clock
	Waiting          ReasonCode    // why it does not go next; empty when it is ready
	// Answered: its record was written after it had seen that of the operation as it stands; of this host and its own
	// replacement, it has looked since then.
	Answered bool
	Turn     bool    // it is in its turn by its own disk, whatever etcd shows, and nobody has released it
	Own      bool    // the record is the deciding host's, and its own agent has written it
	Sees     []Sight // the other members, of a host that is a member or that decides
	// MemberLostFor is since when it has said that its own member can never come back; 0 when it does not.
	MemberLostFor time.Duration
	Ails          UnhealthySince // since when it says that it harms the cluster
	// Recovers tells that it is SLOW or worse by the past alone: its writes are fast again.
	Recovers bool
	// Strained tells that it has been WARM or worse within CommonSpan because of its disk, processor or network.
	Strained bool
	Drills   RestoreTestAbility // whether it can test restores
	Stores   bool               // its configuration names a place for snapshots
	Writes   Writes
}

// Writes is how long a host's writes take, by its own record.
type Writes struct {
	Mean time.Duration // rounded up; 0 if unknown
	Age  time.Duration // since this agent first saw that measurement
}

// Lock is the lock as this host sees it.
type Lock struct {
	Known    bool
	Held     bool // somebody holds it
	Mine     bool // and it is this agent
	ValidFor time.Duration
	Holder   string // host ID
	Token    int64
}

// OpPhase is how far an operation has come, as its record says. What to do next is decided by it beside what is seen:
// rollback is an intent that must survive a crash, down and back tell whether etcd was stopped cleanly.
type OpPhase string

// The phases of a join, in order, and the way back.
const (
	PhaseBegun    OpPhase = "begun"
	PhaseAdded    OpPhase = "added"
	PhaseStarted  OpPhase = "started"
	PhasePromoted OpPhase = "promoted"
	PhaseRollback OpPhase = "rollback"
)

// The phases of a cycle, in order; it begins with PhaseBegun, too.
const (
	PhaseReady OpPhase = "ready" // the hooks have run
	PhaseDown  OpPhase = "down"  // etcd is stopped, the machine may be touched
	PhaseBack  OpPhase = "back"  // etcd runs again
)

// PhaseRemoving is that of a removal which etcd may have been told of: it may land at any time from then on. It begins
// with PhaseBegun, too.
const PhaseRemoving OpPhase = "removing"

// KindJoin is the kind of operation that makes a spare a standby or voter.
const KindJoin = "join"

// KindCycle is the kind of operation that takes a host down and brings it back.
const KindCycle = "cycle"

// KindRemove is the kind of operation that takes a member out for good, at a person's word. Its host is the one that
// was asked, not that of the member.
const KindRemove = "remove"

// KindReplace is the kind of operation that puts a host in the place of a voter that is dead or sick: a join that names
// whom it replaces. Its host is the one that joins.
const KindReplace = "replace"

// Op is the operation in flight.
type Op struct {
	Kind        string
	Host        string // the host that is operated on, or that was asked to remove a member
	HostName    string
	Target      Role
	Phase       OpPhase
	Token       int64
	MemberID    uint64
	Replaces    uint64 // the member that is replaced
	PeerURL     string
	Reason      string
	Outcome     ReasonCode    // with which it is rolled back, as its record has it
	Overdue     bool          // it lasts longer than was said; that is told, and changes nothing
	SameBoot    bool          // its host has not rebooted since it began; only its own host knows
	Restarted   bool          // etcd has been started since it began; only its own host knows
	Elapsed     time.Duration // since it began or was first seen by this agent
	OrphanedFor time.Duration // since when no lock stands behind it
	WrittenFor  time.Duration // since when its record is as it is
}

// Pause is a pause of the whole cluster.
type Pause struct {
	By, Reason string
}
