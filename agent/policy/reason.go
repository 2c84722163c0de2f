// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"time"
)

// ReasonCode names why a host does not act, or how an operation ended. It is the same in the CLI, the log, the metrics,
// the history and the API.
type ReasonCode string

// The reasons.
const (
	Idle                     ReasonCode = "IDLE"
	EtcdCorrupt              ReasonCode = "ETCD_CORRUPT"
	DataDiffers              ReasonCode = "DATA_DIFFERS"
	EtcdNoSpace              ReasonCode = "ETCD_NO_SPACE"
	ModeObserve              ReasonCode = "MODE_OBSERVE"
	Paused                   ReasonCode = "PAUSED"
	StepStuck                ReasonCode = "STEP_STUCK"
	ClusterUnreachable       ReasonCode = "CLUSTER_UNREACHABLE"
	NoQuorum                 ReasonCode = "NO_QUORUM"
	PermissionDenied         ReasonCode = "PERMISSION_DENIED"
	ClusterIDMismatch        ReasonCode = "CLUSTER_ID_MISMATCH"
	HostConflict             ReasonCode = "HOST_CONFLICT"
	TargetMet                ReasonCode = "TARGET_MET"
	HealthUnknown            ReasonCode = "HEALTH_UNKNOWN"
	NotQualified             ReasonCode = "NOT_QUALIFIED"
	HealthBad                ReasonCode = "HEALTH_BAD"
	CommonCause              ReasonCode = "COMMON_CAUSE"
	VersionUnknown           ReasonCode = "VERSION_UNKNOWN"
	VersionUnsafe            ReasonCode = "VERSION_UNSAFE"
	VersionUntested          ReasonCode = "VERSION_UNTESTED"
	VersionIncompatible      ReasonCode = "VERSION_INCOMPATIBLE"
	ClockUnknown             ReasonCode = "CLOCK_UNKNOWN"
	ClockSkew                ReasonCode = "CLOCK_SKEW"
	SpaceLow                 ReasonCode = "SPACE_LOW"
	SpaceNotKnown            ReasonCode = "SPACE_UNKNOWN"
	UnitUnusable             ReasonCode = "UNIT_UNUSABLE"
	EtcdExternal             ReasonCode = "ETCD_EXTERNAL"
	UnitNotKnown             ReasonCode = "UNIT_UNKNOWN"
	UnitDisabled             ReasonCode = "UNIT_DISABLED"
	UnitBusy                 ReasonCode = "UNIT_BUSY"
	UnitStopped              ReasonCode = "UNIT_STOPPED"
	DefaultCluster           ReasonCode = "DEFAULT_CLUSTER"
	DataUnusable             ReasonCode = "DATA_UNUSABLE"
	DataNotKnown             ReasonCode = "DATA_UNKNOWN"
	BackingOff               ReasonCode = "BACKING_OFF"
	VoterNotLive             ReasonCode = "VOTER_NOT_LIVE"
	Settling                 ReasonCode = "SETTLING"
	LearnerPresent           ReasonCode = "LEARNER_PRESENT"
	LearnerVersion           ReasonCode = "LEARNER_VERSION"
	LearnerLimit             ReasonCode = "LEARNER_LIMIT"
	LearnerOnly              ReasonCode = "LEARNER_ONLY"
	PeerTLSMissing           ReasonCode = "PEER_TLS_MISSING"
	EvenVoters               ReasonCode = "EVEN_VOTERS"
	OperationInFlight        ReasonCode = "OPERATION_IN_FLIGHT"
	LockHeld                 ReasonCode = "LOCK_HELD"
	LowerRanked              ReasonCode = "LOWER_RANKED"
	LearnerBehind            ReasonCode = "LEARNER_BEHIND"
	LearnerNotSteady         ReasonCode = "LEARNER_NOT_STEADY"
	LearnerNotStarted        ReasonCode = "LEARNER_NOT_STARTED"
	LearnerStalled           ReasonCode = "LEARNER_STALLED"
	JoinTimedOut             ReasonCode = "JOIN_TIMED_OUT"
	HealthLost               ReasonCode = "HEALTH_LOST"
	HostRebooted             ReasonCode = "HOST_REBOOTED"
	Orphaned                 ReasonCode = "ORPHANED"
	OperationRejected        ReasonCode = "OPERATION_REJECTED"
	Joined                   ReasonCode = "JOINED"
	ClusterExists            ReasonCode = "CLUSTER_EXISTS"
	Starting                 ReasonCode = "STARTING"
	MemberDown               ReasonCode = "MEMBER_DOWN"
	MemberLost               ReasonCode = "MEMBER_LOST"
	StepFailed               ReasonCode = "STEP_FAILED"
	QuorumAtRisk             ReasonCode = "QUORUM_AT_RISK"
	LearnerUnsettled         ReasonCode = "LEARNER_UNSETTLED"
	CycleQueued              ReasonCode = "CYCLE_QUEUED"
	InMaintenance            ReasonCode = "IN_MAINTENANCE"
	MaintenanceOverdue       ReasonCode = "MAINTENANCE_OVERDUE"
	RebootAwaited            ReasonCode = "REBOOT_AWAITED"
	HealthAwaited            ReasonCode = "HEALTH_AWAITED"
	LeadershipNotTransferred ReasonCode = "LEADERSHIP_NOT_TRANSFERRED"
	LeaderSlow               ReasonCode = "LEADER_SLOW"
	HookRunning              ReasonCode = "HOOK_RUNNING"
	HookFailed               ReasonCode = "HOOK_FAILED"
	CommandRunning           ReasonCode = "COMMAND_RUNNING"
	CommandFailed            ReasonCode = "COMMAND_FAILED"
	Defragmenting            ReasonCode = "DEFRAGMENTING"
	DefragFailed             ReasonCode = "DEFRAG_FAILED"
	FreeingSpace             ReasonCode = "FREEING_SPACE"
	Stopping                 ReasonCode = "STOPPING"
	Returning                ReasonCode = "RETURNING"
	NotBack                  ReasonCode = "NOT_BACK"
	Cycled                   ReasonCode = "CYCLED"
	Cancelled                ReasonCode = "CANCELLED"
	Recalled                 ReasonCode = "RECALLED"
	RecordUnreadable         ReasonCode = "RECORD_UNREADABLE"
	MemberLive               ReasonCode = "MEMBER_LIVE"
	Removed                  ReasonCode = "REMOVED"
	RepairLimitReached       ReasonCode = "REPAIR_LIMIT_REACHED"
	VoterDead                ReasonCode = "VOTER_DEAD"
	VoterUnhealthy           ReasonCode = "VOTER_UNHEALTHY"
	VoterSuspect             ReasonCode = "VOTER_SUSPECT"
	StandbyLost              ReasonCode = "STANDBY_LOST"
	BackupOld                ReasonCode = "BACKUP_OLD"
	BackupFailed             ReasonCode = "BACKUP_FAILED"
	RestoreTestOverdue       ReasonCode = "RESTORE_TEST_OVERDUE"
	RestoreTestFailed        ReasonCode = "RESTORE_TEST_FAILED"
	SnapshotFirst            ReasonCode = "SNAPSHOT_FIRST"
	UpgradeHeld              ReasonCode = "UPGRADE_HELD"
	DowngradeAwaited         ReasonCode = "DOWNGRADE_AWAITED"
	DowngradeEnabled         ReasonCode = "DOWNGRADE_ENABLED"
	Ejected                  ReasonCode = "EJECTED"
	TooManyVoters            ReasonCode = "TOO_MANY_VOTERS"
	SizeDiffers              ReasonCode = "SIZE_DIFFERS"
	StandbysDiffer           ReasonCode = "STANDBYS_DIFFER"
	QuotasDiffer             ReasonCode = "QUOTAS_DIFFER"
	HostRetired              ReasonCode = "HOST_RETIRED"
	ClientURLDiffers         ReasonCode = "CLIENT_URL_DIFFERS"
	Recovering               ReasonCode = "RECOVERING"
	Recovered                ReasonCode = "RECOVERED"
	RecoveryGivenUp          ReasonCode = "RECOVERY_GIVEN_UP"
	QuorumRestored           ReasonCode = "QUORUM_RESTORED"
	BootstrapWaiting         ReasonCode = "BOOTSTRAP_WAITING"
)

// ReasonInfo declares a reason.
type ReasonInfo struct {
	Code    ReasonCode
	Meaning string
	Remedy  string // instructions for the operator; empty if waiting is enough
}

// OurUnit is a placeholder in remedies for the unit that runs etcd. Callers that know the configuration replace it.
const OurUnit = "UNIT (etcd.unit in quorumd.yaml)"

// Reasons returns all reasons.
func Reasons() []ReasonInfo {
	return slices.Concat(clusterReasons(), hostReasons(), joinReasons(), memberReasons(),
		otherMemberReasons(), plannedReasons(), defragReasons(), spaceReasons(), recoveryReasons(), backupReasons())
}

// clusterReasons returns the reasons about the agent, the cluster and the connection to it.
func clusterReasons() []ReasonInfo {
	return []ReasonInfo{
		{RecoveryGivenUp, "the recovery plan was given up; this host kept its data", ""},
		{Idle, "everything is as it should be", ""},
		{
			ModeObserve, "observe mode: the agent reports what it would do, but does nothing",
			"set mode: manage in the configuration, then run systemctl reload quorumd",
		},
		{
			EtcdCorrupt, "etcd raised the CORRUPT alarm: members hold different data, so the membership does not " +
				"change",
			"see 'Data of members differ' in the runbook of QuorumdNeedsOperator before you run etcdctl alarm disarm",
		},
		{
			DataDiffers, "the voters hold different data: no majority agrees, or the leader's data differs from that " +
				"of a majority",
			"quorumctl health VOTERS_DIFFER on a voter's host shows which member differs; if it leads: quorumctl " +
				"leader transfer; then follow the runbook of QuorumdDataDiffers",
		},
		{
			EtcdNoSpace, "etcd raised the NOSPACE alarm: its database has reached the quota, so etcd rejects writes",
			"free space (etcdctl compact REVISION, then etcdctl defrag member by member), or raise " +
				"--quota-backend-bytes; then etcdctl alarm disarm",
		},
		{Paused, "the cluster is paused", "quorumctl resume"},
		{
			StepStuck, "a step was started, but has not returned",
			"check the disk and the etcd unit, fix them, then restart quorumd",
		},
		{
			ClusterUnreachable, "no voter answers",
			"quorumctl status on another host; check cluster.endpoints, the network and the certificates. If no " +
				"cluster exists yet: quorumctl bootstrap, on one host only",
		},
		{
			NoQuorum, "this host's cluster does not answer or has no quorum",
			"start etcd on the members that quorumctl status shows as down, or check the network and the " +
				"certificates between them and this host. If the majority is gone for good: quorumctl recover",
		},
		{
			PermissionDenied, "etcd denies quorumd's user a permission it needs",
			"grant the permissions listed under ETCD WITH AUTHENTICATION in quorumd(8)",
		},
		{
			ClusterIDMismatch, "the endpoints belong to a different cluster than this host",
			"check cluster.endpoints, cluster.id and which cluster's data is in etcd.dataDir; if the old cluster is " +
				"gone for good, remove cluster.json from paths.state",
		},
		{
			HostConflict, "another host uses the same ID, name or peer URL, all other hosts use a different " +
				"cluster.name, or etcd.peerURL is not the peer URL of this host's member",
			"give this host a unique host.name, host.id and etcd.peerURL, and the cluster.name of the other hosts; " +
				"if etcd.peerURL was changed: quorumctl readdress HOST --reason '<why>', or set it back to the URL " +
				"that quorumctl member list -o wide shows, and reload quorumd",
		},
		{TargetMet, "the cluster has all the voters and standbys that it should have", ""},
		{
			BootstrapWaiting, "not all hosts in bootstrap.hosts agree yet whether a cluster exists, or which of them " +
				"creates one",
			"on the named host, check that quorumd runs, that its port in bootstrap.hosts answers, and that its " +
				"bootstrap.hosts is the same. If hosts are committed to an earlier attempt and it is certain that no " +
				"cluster exists: stop quorumd on all listed hosts, remove bootstrap-attempt.json from paths.state on " +
				"each, and start quorumd again",
		},
	}
}

// hostReasons returns the reasons about the host itself: its health state, etcd, unit, clock and disk.
func hostReasons() []ReasonInfo {
	return []ReasonInfo{
		{HealthUnknown, "the host's health state is unknown or stale", "quorumctl health"},
		{
			NotQualified, "the host has not passed its qualifying run",
			"quorumctl health; check whether the disk is fast enough for etcd",
		},
		{HealthBad, "the host's health state does not allow the operation", "quorumctl health"},
		{
			CommonCause, "several members became unhealthy together, so the cause is probably shared",
			"check what they share: storage, network, power, a recent change",
		},
		{VersionUnknown, "the version of etcd is not known", "check etcd.binary"},
		{
			VersionUnsafe, "etcd is too old for safe membership changes",
			"upgrade to at least 3.5.31 or 3.6.12 (package quorumd-etcd), or set cluster.allowUnsafeVersion: true",
		},
		{
			VersionUntested, "etcd is newer than any version quorumd was tested with",
			"upgrade quorumd, or install an older etcd (package quorumd-etcd); override: " +
				"cluster.allowUnsafeVersion: true",
		},
		{
			VersionIncompatible, "this host's etcd version cannot join the cluster",
			"install the etcd version that the cluster runs, or the next minor one",
		},
		{ClockUnknown, "no voter returns a time to compare the clock with", "check that the voters' client URLs " +
			"answer /version"},
		{ClockSkew, "this host's clock is off", "set the clock: chronyc makestep, timedatectl"},
		{
			SpaceLow, "free space is less than twice the database size",
			"free up space on the file system of etcd.dataDir",
		},
		{
			SpaceNotKnown, "the free space for etcd is unknown",
			"if it persists, check that the file system of etcd.dataDir responds: df, journalctl -u quorumd",
		},
		{
			UnitUnusable, "the etcd unit cannot be used",
			"check etcd.unit, and that the unit is installed and not masked",
		},
		{
			EtcdExternal, "etcd is managed externally on this host; quorumd neither starts nor stops it",
			"start and stop it with the tool that manages it, during quorumctl maintenance; to let quorumd do " +
				"that, install the programs start and stop in /etc/quorumd/hooks/etcd.d",
		},
		{
			UnitNotKnown, "the state of the etcd unit is unknown",
			"if it persists, check that systemd answers quorumd: systemctl status, journalctl -u quorumd",
		},
		{UnitDisabled, "nothing starts etcd on this host after a boot", "systemctl enable " + OurUnit},
		{
			UnitBusy, "etcd runs on this host, but not as a member of this cluster",
			"if it is not needed: systemctl disable --now " + OurUnit,
		},
		{
			UnitStopped, "etcd was stopped cleanly, so quorumd leaves it stopped",
			"to run it again: systemctl start " + OurUnit,
		},
		{
			DefaultCluster, "etcd was started here without settings and created a single-member cluster on localhost",
			"if it contains no keys: systemctl stop " + OurUnit + ", then rename the directory member in " +
				"etcd.dataDir; this host then joins without data (see 'A cluster that etcd made by " +
				"default' in the runbook of QuorumdNeedsOperator)",
		},
		{
			DataUnusable, "quorumd cannot use what etcd.dataDir contains, and leaves it unchanged",
			"inspect etcd.dataDir; move the data away if it is not needed",
		},
		{
			DataNotKnown, "the contents of etcd's data directory are unknown",
			"if it persists, check that the file system of etcd.dataDir responds: df, journalctl -u quorumd",
		},
		{
			Ejected, "another host replaced this host, which rejoins once it has stayed healthy for long enough",
			"wait; quorumctl history shows why it was replaced. To let it join as soon as the cause is fixed, set " +
				"repair.cleanFor: 0s in quorumd.yaml here and run systemctl reload quorumd",
		},
		{BackingOff, "the last join failed; the next attempt is delayed", "quorumctl history shows why"},
	}
}

// joinReasons returns the reasons why a host does not join now, and the outcomes of a join.
func joinReasons() []ReasonInfo {
	return []ReasonInfo{
		{
			VoterNotLive, "a voter does not answer a linearizable read",
			"start etcd there, or find out why it is unreachable; if its machine is gone for good: quorumctl member " +
				"remove NAME --reason '<why>'",
		},
		{Settling, "a recent or pending change must settle first", ""},
		{
			LearnerPresent,
			"another learner is joining or is the standby: apart from permanent learners, quorumd allows one at a time",
			"wait, if that host is joining; if its learner is gone for good: quorumctl member remove NAME --reason " +
				"'<why>'",
		},
		{
			LearnerVersion, "etcd before 3.6 allows only one learner, and a permanent one would keep every other " +
				"host from joining",
			"upgrade etcd on every host to 3.6 or newer, or remove host.role here and reload quorumd",
		},
		{
			LearnerLimit, "with permanent learners, one more learner joins only if --max-learners is the same and " +
				"large enough on every member",
			"on every host, set ETCD_MAX_LEARNERS in etcd.environment in quorumd.yaml to one more than the number of " +
				"hosts with host.role: learner, and reload quorumd; then name every host: quorumctl readdress " +
				"HOST... --reason '<why>'",
		},
		{
			PeerTLSMissing, "peer URLs with https need a valid peer certificate on every host, but this host or " +
				"another member's running etcd has none",
			"on each named host, install certificates that are valid for the host in etcd.peerURL and signed " +
				"by a CA in etcd.tls.peerCA, set etcd.tls in quorumd.yaml and reload quorumd; if the running etcd " +
				"has no certificate: quorumctl readdress HOST --reason '<why>' before etcd.peerURL is changed",
		},
		{
			LearnerOnly, "host.role is learner, but this host's member is a voter, and a voter cannot become a learner",
			"quorumctl retire HOST --reason '<why>'; once the voter has left: quorumctl retire HOST --undo; to keep " +
				"the voter, remove host.role and reload quorumd",
		},
		{
			EvenVoters, "one more voter would make the count even, and no other host is ready to join after it",
			"bring one more host to health OK",
		},
		{OperationInFlight, "an operation is in progress", "quorumctl operation show"},
		{LockHeld, "another agent holds the lock", ""},
		{LowerRanked, "another host goes first", ""},
		{LearnerBehind, "the learner has not caught up", ""},
		{LearnerNotSteady, "the learner has caught up, but its join cannot complete yet", ""},
		{LearnerNotStarted, "the learner's etcd does not answer yet", ""},
		{LearnerStalled, "the learner has made no progress", "journalctl -u etcd on that host"},
		{JoinTimedOut, "the join, or the removal of a voter, has lasted too long", "journalctl -u etcd on that host"},
		{HealthLost, "the host became unhealthy during its join", "quorumctl health on that host"},
		{HostRebooted, "the host rebooted during its join", ""},
		{
			Orphaned, "the agent that began the operation, or its learner, is gone",
			"check why quorumd on that host does not answer",
		},
		{
			OperationRejected, "the host that the operation names did not begin it, or no longer allows it",
			"quorumctl history; check who can write under quorumd's prefix in etcd: write access there is operator " +
				"access",
		},
		{Joined, "the host has joined", ""},
		{ClusterExists, "a cluster exists or may exist already, so no new one is created", ""},
		{Starting, "etcd is starting", ""},
	}
}

// backupReasons returns the reasons about snapshots and restore tests.
func backupReasons() []ReasonInfo {
	return []ReasonInfo{
		{
			BackupOld, "the newest snapshot is older than the limit",
			"quorumctl status shows which host takes the next one and what it waits for; quorumctl snapshot save " +
				"takes one now",
		},
		{
			BackupFailed, "the last attempt to save a snapshot failed",
			"fix the named cause; quorumd retries within ten minutes; to retry at once: quorumctl snapshot save",
		},
		{
			SnapshotFirst, "an etcd rollout, or the removal of a healthy voter, waits for a snapshot",
			"wait; if no snapshot can be taken, fix the named cause, or quorumctl rollout abort and start the " +
				"rollout again with --without-snapshot; before a removal: quorumctl snapshot save",
		},
		{
			RestoreTestOverdue, "no recent restore test passed",
			"quorumctl status shows which host runs the next restore test and what it waits for; to run one now: " +
				"quorumctl snapshot test-restore",
		},
		{
			RestoreTestFailed, "the last restore test failed",
			"if the snapshot is damaged, take a new one: quorumctl snapshot save; quorumctl snapshot test-restore " +
				"repeats the test",
		},
	}
}

// recoveryReasons returns the reasons of a cluster after quorum loss.
func recoveryReasons() []ReasonInfo {
	return []ReasonInfo{
		{
			Recovering, "a recovery plan is in progress after quorum loss",
			"quorumctl recover status shows the progress; a failed step is retried once its cause is fixed",
		},
		{Recovered, "the cluster was recovered; this host's part is done", ""},
		{QuorumRestored, "the cluster regained quorum, so the recovery plan was given up", ""},
	}
}

// plannedReasons returns the reasons about changes that operators have planned, and about settings that differ.
func plannedReasons() []ReasonInfo {
	return []ReasonInfo{
		{
			Recalled, "the work on this host was called off, because the cluster needs its vote",
			"bring the failed voter back; once all voters are live, request the maintenance again; a reboot is " +
				"retried automatically",
		},
		{
			HostRetired, "an operator has retired this host: its member leaves, and the host does not join again",
			"if it has left, switch it off; to let it join again: quorumctl retire HOST --undo",
		},
		{
			ClientURLDiffers, "etcd.clientURL is not the client URL with which this host's member is registered",
			"quorumctl readdress HOST --reason '<why>' applies it; or set it back to the URL that quorumctl member " +
				"list -o wide shows, and reload quorumd",
		},
		{
			SizeDiffers, "cluster.voters in this host's configuration is not the size of the cluster",
			"set cluster.voters in quorumd.yaml to that size and run systemctl reload quorumd; to change the size: " +
				"quorumctl cluster resize N --reason '<why>'",
		},
		{
			UpgradeHeld, "an upgrade pauses before the last member with the old version; until an operator resumes " +
				"or aborts it, that member is not removed either",
			"quorumctl upgrade resume continues it, and then no member can be rolled back; quorumctl upgrade abort " +
				"--command NAME --reason '<why>' rolls the upgraded hosts back",
		},
		{
			DowngradeAwaited, "before its etcd is replaced, this host waits until every member is ready for the " +
				"older version", "",
		},
		{
			DowngradeEnabled, "etcd's downgrade job is enabled: until it has ended, no new member can start",
			"quorumctl upgrade status shows what the downgrade waits for; quorumctl upgrade abort cancels it; " +
				"etcdctl downgrade cancel cancels one that quorumd has not enabled",
		},
		{
			StandbysDiffer, "cluster.standbys differs between hosts; only a host where it is 1 becomes the standby",
			"set the same cluster.standbys in quorumd.yaml on every host, and run systemctl reload quorumd there",
		},
	}
}

// Info returns the declaration of a code.
func (c ReasonCode) Info() ReasonInfo {
	if info, known := reasonsByCode[c]; known {
		return info
	}
	return ReasonInfo{Code: c}
}

// reasonsByCode is never changed.
var reasonsByCode = func() map[ReasonCode]ReasonInfo {
	all := map[ReasonCode]ReasonInfo{}
	for _, info := range Reasons() {
		all[info.Code] = info
	}
	return all
}()

// Reason is a code with the evidence.
type Reason struct {
	Code ReasonCode
	Text string // the evidence, with values and limits
}

// Decision is the next step of the host, and the reasons why it does nothing more.
type Decision struct {
	Step    Step
	Reasons []Reason // the most important reason first; at least one if there is no step
	// Would is the step that is withheld, for example in observe mode or during a pause.
	Would Step
	Role  Role
	// Waiting is the host's own reason not to act next, independent of other hosts; empty if the host is ready. The
	// host publishes it, so that other hosts wait only for hosts that are ready.
	Waiting ReasonCode
	// Again is how soon to observe again if the next regular round would be too late; else 0.
	Again  time.Duration
	Behind []string // IDs of the hosts whose records the host waits for
	First  bool     // the host is a ready spare, and no other host joins before it
	Quiet  bool     // the cluster is quiet: the members need not be asked in every round
	Notes  Notes    // the notes to record and publish, whatever the step
}
