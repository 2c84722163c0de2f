// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

// View holds everything that a host has observed when it decides. It is immutable. Unless stated otherwise, durations
// are measured with this host's monotonic clock and count from when this agent first observed a state, so an agent that
// has just started waits longer rather than shorter.
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
	Hosts               []Host // hosts whose record is present, including this one, sorted by ID
	Lock                Lock
	Recovery            *Recovery           // this host's part of a recovery plan, or nil
	CopiedFor           time.Duration       // time since this agent last began to copy the survivor's data, or Never
	Asked               *Asked              // the request to take this host down, or nil
	Removal             *Removal            // the request on this host to remove a member, or nil
	TransferAsked       *TransferRequest    // the request to this host to transfer leadership, or nil
	Op                  *Op                 // the operation in flight, or nil
	Pause               *Pause              // the pause in force, or nil
	Retired             []Retired           // the hosts that operators have retired
	Rollout             *Rollout            // the last rollout, or nil
	Queue               *Queue              // the join queue in etcd, or nil
	Backup              Backup              // the cluster's snapshots
	Spool               Spool               // the directory in which this host tests restores
	Space               Space               // the state of freeing space in the databases
	Repairs             int                 // how many voters were replaced in the last day
	Ejections           Ejections           // how often this host's member was replaced
	Unreadable          []Unreadable        // records in etcd that cannot be read
	IdleFor             time.Duration       // for how long no operation has been in flight
	PlaceFreeFor        time.Duration       // for how long a place has been free, with no operation and no lock
	Backoff             time.Duration       // time until the next attempt after a failed join
	Stuck               string              // a step that was started and has not returned, or empty
	LeadershipTransfers LeadershipTransfers // leadership of this host's member, and requested transfers
	Led                 *View               // the view of this host's own member if it leads but should not; else nil
	Failed              FailedStep          // the last step, if it failed
	// Resting reports that this host has no member and does not have to act next (see LooksEveryRound), so it does not
	// read Hosts and the members' statuses in every round. In a large fleet, it keeps only a part of Hosts until it
	// reads them again. Any other host reads the members' statuses in every round, except in every second round of a
	// quiet cluster (see QuietRounds) and in an early round (see [Decision.Again]).
	Resting bool
	// HostsFresh reports that Hosts was read in this round.
	HostsFresh bool
	// PromotionPending reports that this agent requested a promotion so recently that it may still take effect, even if
	// the call has failed.
	PromotionPending bool
	// UpdatePending reports that this agent sent an update of its member's peer URL so recently, without an answer,
	// that it may still take effect. It is also true for a while after the agent has started.
	UpdatePending bool
}

// FailedStep is a step whose last attempt failed.
type FailedStep struct {
	Kind   StepKind
	Text   string
	Denied bool // etcd's users and roles do not permit the step
	Full   bool // etcd rejects writes: its database is at its quota
}

// Mode selects whether an agent may act.
type Mode string

// The modes. A fresh install observes.
const (
	Observe Mode = "observe" // reports what it would do
	Manage  Mode = "manage"
)

// Self is the deciding host.
type Self struct {
	ID, Name string
	// PeerURL is the peer URL of this host's member in the member list, or the configured one if it has no member.
	PeerURL string
	// NewPeerURL is the configured peer URL if the member list has a different one for this host's member; else empty.
	NewPeerURL string
	// NewClientURL is the configured client URL if this host's member is registered with a different one; else empty.
	// If it is set, ClientURL lists the registered ones, separated by commas.
	NewClientURL, ClientURL string
	// PeerFiles describes the files with which etcd would serve https to other members.
	PeerFiles PeerFiles
	Mode      Mode
	Etcd      Version // the version of the configured binary; zero if unknown
	Binary    string  // the path of that binary
	// Drives reports that this agent starts and stops this host's etcd, directly or through the operator's hooks.
	// Otherwise something else does, such as a kubelet.
	Drives bool
	// Learner reports that this host is configured to be a permanent learner.
	Learner bool
	// MaxLearners is the number of learners to which this host's etcd would limit the cluster, as configured.
	MaxLearners int
	// NextLearners is the limit on learners for etcd's next start, and NextLearnersFrom is where it is set: the path of
	// an environment file, or "etcd's unit". They are zero if unknown.
	NextLearners     int
	NextLearnersFrom string
	Conflict         string // the identity conflict, such as another host's claim to this ID; empty if there is none
	// MemberID, ClusterID and StandbyID are recorded on this host's disk: its last known member, the member's cluster,
	// and its learner that is a standby. Each is 0 if there is none.
	MemberID, ClusterID, StandbyID uint64
	// LostID is the member that this host has given up because its data is gone; 0 if there is none.
	LostID uint64
	// DataMount lists the mount points of the file systems that held the member's data; empty if unknown.
	DataMount string
}

// Target is the size of the cluster. The configured number of voters applies until an operator resizes the cluster.
// From then on, the size recorded in etcd applies.
type Target struct {
	Voters   int // odd, except while the recorded size is unusable: then the current number of voters
	Standbys int // 0 or 1
	Resized  bool
	// ResizedFor is for how long this agent has observed the recorded size; 0 if there is none.
	ResizedFor      time.Duration
	WithoutSnapshot bool // an operator allows a resize to one voter without a recent snapshot
	Configured      int  // the configured number of voters
}

// Limits are the times and sizes of the policy, from the configuration.
type Limits struct {
	Settle        time.Duration // minimum time between membership changes
	Cooldown      time.Duration // minimum time from the end of an operation to the next one
	PromoteStable time.Duration // how long a learner must have been up before it is promoted
	SteadyLag     time.Duration // how long a learner's lag must have been within PromoteLag
	PromoteLag    uint64        // how many entries a learner may be behind the leader when it is promoted
	LearnerStall  time.Duration // a learner that makes no progress for this long is removed
	LearnerMax    time.Duration // a join that lasts longer than this is rolled back
	OrphanGrace   time.Duration // another host may end an operation that has been without its lock for this long
	// HealthDelay is the longest time between two reports of a host's health state while its calls to etcd time out.
	HealthDelay time.Duration
	LockTTL     time.Duration
	StartRetry  time.Duration // minimum time between two starts of a failed unit
	// TransferTimeout is how long a leadership transfer may fail before that is reported or ends the operation. It is
	// also the time between two attempts to reboot, and limits other short waits of an operation.
	TransferTimeout  time.Duration
	TransferInterval time.Duration // minimum time between two leadership transfers from an unhealthy leader
	ReturnStable     time.Duration // how long a member that was taken down must have served since it came back
	ReturnMax        time.Duration // after this time, a member that has not come back is reported
	ReturnGiveUp     time.Duration // after this time with a FAILED disk, the operation ends; 0: never
	ClockOffset      time.Duration // a host whose clock is off by more than this neither joins nor replaces a voter
	AllowUnsafe      bool          // an etcd below the safe version or newer than tested is accepted
	// DeadGrace is how long a voter must have been dead before another host replaces it; 0: never.
	DeadGrace time.Duration
	// UnhealthyGrace is how long a voter must have been SLOW or worse, by its own report and by evidence, before
	// another host replaces it; 0: never. A disk that is only slow gets more time, and one that hangs may get less: see
	// graceLeft.
	UnhealthyGrace time.Duration
	RepairsPerDay  int // the maximum number of replacements per day without an operator
	// CleanFor is how long an ejected host must have been healthy before it joins again. It doubles with each further
	// ejection; 0: the host joins at once.
	CleanFor time.Duration
}

// UnitState is the state of the local etcd unit.
type UnitState string

// The states of the unit. The zero value is unknown.
const (
	UnitUnknown      UnitState = ""
	UnitMissing      UnitState = "missing"
	UnitInactive     UnitState = "inactive" // etcd has not been started, was stopped, or exited cleanly
	UnitActivating   UnitState = "activating"
	UnitActive       UnitState = "active"
	UnitDeactivating UnitState = "deactivating"
	UnitFailed       UnitState = "failed" // etcd exited with an error, or could not be started
)

// Unit is the local etcd unit.
type Unit struct {
	State      UnitState
	Since      time.Duration // how long the unit has been in this state, as observed by this agent
	Ran        bool          // the unit has run since the machine booted; false if unknown
	EnvReady   bool          // this agent process has written the environment with which etcd should start now
	EnvBegun   bool          // this agent process has at least begun to write that environment
	SinceStart time.Duration // time since this agent last started the unit; Never if it has not
	Program    string        // the program that the unit starts, if that is not the configured binary
	NotAtBoot  bool          // nothing starts the unit after a boot
	Detail     string        // explains State, such as an exit code or why the state is unknown
}

// Never is the time since an event that has not happened.
const Never = time.Duration(1<<63 - 1)

// DataState is the type of content in the data directory.
type DataState string

// The states of the data directory. The zero value is unknown.
const (
	DataUnknown    DataState = ""
	DataEmpty      DataState = "empty"      // absent, or without any file of etcd
	DataRemains    DataState = "remains"    // left by an etcd that exited before it became a member: no write-ahead log
	DataMember     DataState = "member"     // the data of the cluster and member named in Data
	DataUnreadable DataState = "unreadable" // its contents cannot be read or parsed
)

// Data is the local data directory.
type Data struct {
	State     DataState
	ClusterID uint64
	MemberID  uint64
	Mount     string        // the mount points of its file systems; empty if unknown
	Age       time.Duration // time since the directory was read
	Free      uint64        // bytes free on its file system
	FreeKnown bool
	Detail    string // why the contents are unknown or unreadable; empty if there is no error
}

// unread returns a text for a data directory that has not been read, with the cause if it is known.
func (d Data) unread() string {
	if d.Detail == "" {
		return "the data directory has not been read yet"
	}
	return "the data directory has not been read yet: " + d.Detail
}

// Health is this host's health state.
type Health struct {
	State     health.State
	For       time.Duration // for how long the host has been in State
	Ungated   health.Gate   // the gates that no finding closes
	Qualified bool
	Hangs     bool // a write to the disk hangs now, so a lock might not be renewed
	// SlowWrites reports that slow writes alone keep this host from leading.
	SlowWrites bool
	// FastAgain reports that the writes are not slow now, even if the health state has not improved yet.
	FastAgain bool
	// AnswersAgain reports that only ETCD_STALLED keeps this host from leading, and that etcd answers requests again.
	AnswersAgain bool
	// Habitual reports that the disk's own past explains the slow writes: they are usual at this hour.
	Habitual bool
	// Urgent reports that most of the newest writes take so long that clients notice at once.
	Urgent bool
	// AsUsual reports that the writes now take about as long as in the last week, apart from rare ones.
	AsUsual bool
	Writes  time.Duration // the current mean write time: the lowest of several windows; 0 if unknown
	// In Figures, P90 and Tails are the lower values LeastP90 and LeastTails of [health.Writes].
	Figures WriteFigures
	Text    string // the reason for the state, with the measured value and its limit
}

// Clock compares this host's wall clock with the voters'.
type Clock struct {
	Known  bool
	Offset time.Duration
}

// Bootstrap holds the one-time request, by an operator or by the automatic bootstrap, that this host create a new
// cluster, and what this host knows of existing clusters.
type Bootstrap struct {
	Requested bool
	Decided   bool // no other host in bootstrap.hosts had a cluster or a request when asked, or all had agreed before
	Done      bool // this host has belonged to a cluster, so it is not new even if its disk is empty
	// LastCluster is the last cluster that answered this host, even if the host is not its member; 0 if none has. That
	// cluster counts as existing even while it does not answer, so this host creates no new one.
	LastCluster uint64
	Listed      bool // the member list of the cluster that answers includes this host
}

// Cluster is the etcd cluster.
type Cluster struct {
	Reachable  bool // the last attempt read the records linearizably and, if it was due, the member list
	Listed     bool // Reachable is set, or the last attempt read at least the member list
	Fresh      bool // the last attempt was in this round; otherwise its result is carried over
	ID         uint64
	ExpectedID uint64 // the cluster's ID according to the configuration or this host's own past; 0 if unknown
	Members    []Member
	StableFor  time.Duration // time since the member list last changed
	DBSize     uint64        // the largest database of a member, in bytes
	Error      string        // why the cluster is not reachable
	// Intact reports that no answering member raises the CORRUPT alarm, and Roomy that none raises NOSPACE.
	Intact, Roomy bool
	// Divided means that the voters' data differs, and that no majority has the same data.
	Divided bool
	Alarms  string // the alarms and the members that raise them, as text
	Job     DowngradeJob
	// Led reports that this is the view of this host's own member, which leads. In this view, the records were read
	// from that member alone, and a voter is live if it follows this leader. The view serves only to decide about a
	// leadership transfer.
	Led        bool
	Unread     bool     // only with Led: the last linearizable read failed
	OtherNames []string // other clusters' names in this etcd; read while no other member's host uses this cluster name
	Denied     bool     // the cluster is unreachable because etcd's users and roles deny quorumd access
	// Leaderless is a clause that names the other voters of this host's own cluster that answer and have no leader;
	// empty unless they prove that there is no quorum without this host's voter. LeaderlessFor is how long this has
	// lasted.
	Leaderless    string
	LeaderlessFor time.Duration
}

// Member is a member of the cluster, with its last answer.
type Member struct {
	ID      uint64
	Name    string // empty until the member has started once
	PeerURL string
	Domain  string // its host's failure domain, as last reported; empty if unknown
	// NotedDomain is the failure domain recorded on the deciding host's disk.
	NotedDomain string
	Learner     bool
	Live        bool // it answered the last request and has a leader; a voter also answered a linearizable read
	Leader      bool
	// ThinksLearner reports that the member itself claims to be a learner, which may lag behind the member list.
	ThinksLearner bool
	Version       Version
	Storage       Version // the version of its database's layout; unknown before etcd 3.6
	Lag           uint64  // raft entries behind the leader
	LagKnown      bool
	RTT           time.Duration // the round-trip time of the deciding host's last request to the member; 0 if unknown
	Errors        bool          // its status reports errors
	Database      Database      // the size of its database, as last reported
	// SilentFor is for how long the member has not been Live, also across short gaps in this agent's observations; 0 if
	// it is Live.
	SilentFor time.Duration
	// Standby reports that the learner's host publishes it, or last published it, as a standby or a permanent learner
	// that is not joining. For this host's own learner, the note on this host's disk counts instead of its host record,
	// which any etcd client could write.
	Standby bool
	// Permanent reports that the learner's host is configured to have a permanent learner, according to the host's
	// record or, while there is none, to the last record that any host has read.
	Permanent bool
	// MaxLearners is the number of learners to which the member's process limits the cluster, according to its host's
	// record; 0 if unknown. For a permanent learner without a record, the last known limit counts.
	MaxLearners int
	// PeerTLS is the peer certificate's state in the member's process, according to its host's record.
	PeerTLS PeerTLS
	// NotedLearner is what the deciding host's disk records about a permanent learner: its last known MaxLearners, or
	// -1 if that is unknown; 0 for any other member.
	NotedLearner int

	LiveFor    time.Duration // how long the member has been Live without a break
	SteadyFor  time.Duration // how long it has been Live with a lag within PromoteLag, without a break
	StalledFor time.Duration // how long a learner's applied index has not moved; a pause restarts it
	StillFor   time.Duration // like StalledFor, but a pause does not restart it
	BehindFor  time.Duration // how long it has been Live and more than PromoteLag behind, without a break
	DownFor    time.Duration // how long it has not been Live
	// ServedFor is how long it was Live without a break before it was last found not Live; 0 if this agent has not
	// observed that.
	ServedFor time.Duration
	// Fsyncs holds its etcd's fsync metrics, as read by the deciding host; empty unless its host reports the member
	// unhealthy.
	Fsyncs Fsyncs
	// Corrupt is what the deciding host has found when it compared the member's data with the other voters'.
	Corrupt Corruption
	// AgentGoneFor is how long its host has had no agent, including the TTL by which a host record outlives its agent.
	// It is 0 while there is an agent, or if it is unknown whether there is one.
	AgentGoneFor time.Duration
}

// Role is a host's role in the cluster.
type Role string

// The roles of a host.
const (
	RoleUnknown Role = "unknown" // the role has not been observed yet
	RoleVoter   Role = "voter"
	RoleStandby Role = "standby" // a caught-up learner kept as a standby
	RoleLearner Role = "learner" // a permanent learner, see [Self.Learner]
	RoleJoining Role = "joining" // joining as a voter, a standby or a permanent learner
	RoleSpare   Role = "spare"   // no member
)

// Host holds the published state of a host.
type Host struct {
	ID, Name, Domain string
	PeerURL          string
	Role             Role
	Health           health.State
	Ungated          health.Gate // the gates that no finding closes
	Qualified        bool
	Manage           bool
	Learner          bool          // the host is configured to have a permanent learner
	MaxLearners      int           // the number of learners that its running etcd allows; 0 if unknown
	NoStandbys       bool          // the host is configured with cluster.standbys: 0
	PeerTLS          PeerTLS       // the state of the peer certificate in its running etcd
	P99              time.Duration // the p99 of its fsyncs, quantised; 0 if unknown
	Wants            Work          // the work that the host's request is for; empty if it has no request
	AskedAt          int64         // when the work was requested, in milliseconds of the host's own wall clock
	Waiting          ReasonCode    // the host's own reason not to act next; empty if it is ready
	// Answered reports that the host has published its health state and observations since the operation's record last
	// changed. For an operation that the deciding host itself carries out, its current observations count instead.
	Answered bool
	// Unreached is why the host does not reach one of the members that the operation asks about; empty if every request
	// was answered, or if none was sent.
	Unreached string
	// InOperation reports that the host's own disk records an operation that was not released, whatever etcd's record
	// shows.
	InOperation bool
	Own         bool                  // this is the deciding host's record, written by its agent or an earlier one
	Sees        []record.Reachability // its reports on the other members, if it is a member or the deciding host
	// MemberLostFor is how long the host has reported that its own member cannot come back; 0 if it does not.
	MemberLostFor  time.Duration
	UnhealthySince UnhealthySince // how long the host has reported that it harms the cluster
	// HealsAfter is the longest time, within the last days, for which the host's disk was SLOW before it became fast
	// again by itself.
	HealsAfter time.Duration
	// Defective reports that the host's disk is not only slow: a drive reports errors, or the disk is SLOW again and
	// again.
	Defective bool
	// DataDiffers reports that the host has compared the voters' data, and that no majority has the same, or that the
	// leader's data differs.
	DataDiffers bool
	// Recovers reports that the host is WARM or SLOW only because of past samples: its writes are fast again.
	Recovers bool
	// Strained reports that the host has a voter, and was WARM or worse within CommonSpan because of its disk, CPU or
	// network.
	Strained     bool
	RestoreTests RestoreTestAbility // whether the host can test restores
	Stores       bool               // the host's configuration names a backup store
	Writes       Writes
	// AsksWrites reports that the host asks the other voters to publish how long their writes take.
	AsksWrites bool
}

// Writes is how long a host's writes take, according to its own host record.
type Writes struct {
	Mean time.Duration // the mean time of a write, rounded up; 0 if unknown
	Age  time.Duration // time since the deciding host's agent first observed Mean
	WriteFigures
	FiguresAge time.Duration // time since that agent first observed the WriteFigures
}

// WriteFigures are the median and the 90th percentile of a host's newest writes, and the number of its slow episodes in
// the last two hours. They are unknown if the median is 0.
type WriteFigures struct {
	P50, P90 time.Duration
	Tails    int
}

// Lock is the lock as this host observes it.
type Lock struct {
	Known    bool
	Held     bool // some host holds it
	Mine     bool // this agent holds it
	ValidFor time.Duration
	Holder   string // the name of the host that holds it
	Token    int64
}

// Op is the operation in flight.
type Op struct {
	Kind        string
	Host        string // the host that is operated on, or that received the request to remove a member
	HostName    string
	Target      Role
	Work        Work // the work of a cycle
	Phase       OpPhase
	Token       int64
	MemberID    uint64
	Replaces    uint64 // the member to be replaced
	PeerURL     string
	Reason      string
	Outcome     ReasonCode    // why the operation is rolled back
	Overdue     bool          // the operation has exceeded its announced duration, which is only reported
	SameBoot    bool          // its host has not rebooted since the operation began; always true on other hosts
	Restarted   bool          // etcd runs and was started since the operation began; false on other hosts
	Elapsed     time.Duration // time since the operation began, or since this agent first observed it
	OrphanedFor time.Duration // for how long its host has not held the lock
	WrittenFor  time.Duration // for how long its record has not changed
}
