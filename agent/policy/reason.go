// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"time"
)

// ReasonCode is the one word for why a host does not do more, or for what an operation has come to. It is the same in
// the CLI, the log, the metric, the history and the API.
type ReasonCode string

// The reasons.
const (
	AtRest              ReasonCode = "AT_REST"
	EtcdCorrupt         ReasonCode = "ETCD_CORRUPT"
	EtcdNoSpace         ReasonCode = "ETCD_NO_SPACE"
	ModeObserve         ReasonCode = "MODE_OBSERVE"
	Paused              ReasonCode = "PAUSED"
	StepStuck           ReasonCode = "STEP_STUCK"
	ClusterUnreachable  ReasonCode = "CLUSTER_UNREACHABLE"
	NoQuorum            ReasonCode = "NO_QUORUM"
	PermissionDenied    ReasonCode = "PERMISSION_DENIED"
	ClusterIDMismatch   ReasonCode = "CLUSTER_ID_MISMATCH"
	HostConflict        ReasonCode = "HOST_CONFLICT"
	TargetMet           ReasonCode = "TARGET_MET"
	HealthUnknown       ReasonCode = "HEALTH_UNKNOWN"
	NotQualified        ReasonCode = "NOT_QUALIFIED"
	HealthBad           ReasonCode = "HEALTH_BAD"
	CommonCause         ReasonCode = "COMMON_CAUSE"
	VersionUnknown      ReasonCode = "VERSION_UNKNOWN"
	VersionUnsafe       ReasonCode = "VERSION_UNSAFE"
	VersionUntested     ReasonCode = "VERSION_UNTESTED"
	VersionIncompatible ReasonCode = "VERSION_INCOMPATIBLE"
	ClockUnknown        ReasonCode = "CLOCK_UNKNOWN"
	ClockSkew           ReasonCode = "CLOCK_SKEW"
	SpaceLow            ReasonCode = "SPACE_LOW"
	SpaceNotKnown       ReasonCode = "SPACE_UNKNOWN"
	UnitUnusable        ReasonCode = "UNIT_UNUSABLE"
	EtcdExternal        ReasonCode = "ETCD_EXTERNAL"
	UnitNotKnown        ReasonCode = "UNIT_UNKNOWN"
	UnitDisabled        ReasonCode = "UNIT_DISABLED"
	UnitBusy            ReasonCode = "UNIT_BUSY"
	UnitStopped         ReasonCode = "UNIT_STOPPED"
	DefaultCluster      ReasonCode = "DEFAULT_CLUSTER"
	DataUnusable        ReasonCode = "DATA_UNUSABLE"
	DataNotKnown        ReasonCode = "DATA_UNKNOWN"
	BackingOff          ReasonCode = "BACKING_OFF"
	VoterNotLive        ReasonCode = "VOTER_NOT_LIVE"
	Settling            ReasonCode = "SETTLING"
	LearnerPresent      ReasonCode = "LEARNER_PRESENT"
	EvenVoters          ReasonCode = "EVEN_VOTERS"
	OperationInFlight   ReasonCode = "OPERATION_IN_FLIGHT"
	LockHeld            ReasonCode = "LOCK_HELD"
	NotMyTurn           ReasonCode = "NOT_MY_TURN"
	LearnerBehind       ReasonCode = "LEARNER_BEHIND"
	LearnerNotSteady    ReasonCode = "LEARNER_NOT_STEADY"
	LearnerNotStarted   ReasonCode = "LEARNER_NOT_STARTED"
	LearnerStalled      ReasonCode = "LEARNER_STALLED"
	JoinTooLong         ReasonCode = "JOIN_TOO_LONG"
	HealthLost          ReasonCode = "HEALTH_LOST"
	HostRebooted        ReasonCode = "HOST_REBOOTED"
	Orphaned            ReasonCode = "ORPHANED"
	Disowned            ReasonCode = "OPERATION_DISOWNED"
	Joined              ReasonCode = "JOINED"
	ClusterExists       ReasonCode = "CLUSTER_EXISTS"
	Starting            ReasonCode = "STARTING"
	MemberDown          ReasonCode = "MEMBER_DOWN"
	MemberLost          ReasonCode = "MEMBER_LOST"
	StepFailed          ReasonCode = "STEP_FAILED"
	QuorumAtRisk        ReasonCode = "QUORUM_AT_RISK"
	LearnerUnsettled    ReasonCode = "LEARNER_UNSETTLED"
	CycleQueued         ReasonCode = "CYCLE_QUEUED"
	InMaintenance       ReasonCode = "IN_MAINTENANCE"
	MaintenanceOverdue  ReasonCode = "MAINTENANCE_OVERDUE"
	RebootAwaited       ReasonCode = "REBOOT_AWAITED"
	VerdictAwaited      ReasonCode = "VERDICT_AWAITED"
	LeaderStays         ReasonCode = "LEADER_STAYS"
	LeaderSlow          ReasonCode = "LEADER_SLOW"
	HookRunning         ReasonCode = "HOOK_RUNNING"
	HookFailed          ReasonCode = "HOOK_FAILED"
	CommandRunning      ReasonCode = "COMMAND_RUNNING"
	CommandFailed       ReasonCode = "COMMAND_FAILED"
	Stopping            ReasonCode = "STOPPING"
	Returning           ReasonCode = "RETURNING"
	NotBack             ReasonCode = "NOT_BACK"
	Cycled              ReasonCode = "CYCLED"
	Withdrawn           ReasonCode = "WITHDRAWN"
	RecordUnreadable    ReasonCode = "RECORD_UNREADABLE"
	MemberLive          ReasonCode = "MEMBER_LIVE"
	Removed             ReasonCode = "REMOVED"
	RepairsSpent        ReasonCode = "REPAIRS_SPENT"
	VoterDead           ReasonCode = "VOTER_DEAD"
	VoterSick           ReasonCode = "VOTER_SICK"
	VoterSuspect        ReasonCode = "VOTER_SUSPECT"
	StandbyLost         ReasonCode = "STANDBY_LOST"
	BackupOld           ReasonCode = "BACKUP_OLD"
	BackupFailed        ReasonCode = "BACKUP_FAILED"
	RestoreUnproven     ReasonCode = "RESTORE_UNPROVEN"
	RestoreFailed       ReasonCode = "RESTORE_FAILED"
	SnapshotFirst       ReasonCode = "SNAPSHOT_FIRST"
	Ejected             ReasonCode = "EJECTED"
	VotersSurplus       ReasonCode = "VOTERS_SURPLUS"
	Recovering          ReasonCode = "RECOVERING"
	Recovered           ReasonCode = "RECOVERED"
	RecoveryGivenUp     ReasonCode = "RECOVERY_GIVEN_UP"
	QuorumBack          ReasonCode = "QUORUM_BACK"
	FoundingWaits       ReasonCode = "FOUNDING_WAITS"
)

// ReasonInfo declares a reason.
type ReasonInfo struct {
	Code    ReasonCode
	Meaning string
	Remedy  string // what the operator does; empty when there is nothing to do but wait
}

// OurUnit stands in remedies for the unit that runs etcd, whose name those fill in who know the configuration.
const OurUnit = "UNIT (etcd.unit in quorumd.yaml)"

// Reasons declares all reasons.
func Reasons() []ReasonInfo {
	return slices.Concat(clusterReasons(), hostReasons(), joinReasons(), memberReasons(), recoveryReasons(),
		backupReasons())
}

// clusterReasons are those of the agent, of the cluster and of the way to it.
func clusterReasons() []ReasonInfo {
	return []ReasonInfo{
		{RecoveryGivenUp, "the plan to bring the cluster back was given up, and this host kept its data", ""},
		{AtRest, "everything is as it should be", ""},
		{
			ModeObserve, "the agent only says what it would do",
			"set mode: manage in the configuration and restart quorumd",
		},
		{
			EtcdCorrupt, "etcd has raised the alarm CORRUPT: data of members differ, and nothing changes who votes",
			"see 'Data of members differ' in the runbook of QuorumdNeedsSomebody before etcdctl alarm disarm",
		},
		{
			EtcdNoSpace, "etcd has raised the alarm NOSPACE: its database is at its quota, and it takes no writes",
			"etcdctl compact REVISION, etcdctl defrag member by member, or a larger --quota-backend-bytes; then " +
				"etcdctl alarm disarm",
		},
		{Paused, "somebody has paused the whole cluster", "quorumctl resume"},
		{
			StepStuck, "a step was started and has not come back",
			"look at the disk and at the unit; restart quorumd when they are well",
		},
		{
			ClusterUnreachable, "no voter answers",
			"see quorumctl status on another host; check cluster.endpoints, the network and the certificates. If " +
				"there is no cluster at all yet: quorumctl bootstrap, on one host only",
		},
		{
			NoQuorum, "the cluster that this host knows does not answer, or has no quorum",
			"start etcd on the members that do not answer, which quorumctl status names, or see why they are cut off " +
				"from this host: the network, the certificates. If most of them are lost for good: quorumctl recover",
		},
		{
			PermissionDenied, "etcd answers, and its users and roles do not let quorumd do what it must",
			"give quorumd's user what it needs: see ETCD WITH AUTHENTICATION in quorumd(8)",
		},
		{
			ClusterIDMismatch, "the endpoints lead to another cluster than this host belongs to",
			"check cluster.endpoints and cluster.id, and whose data lies in etcd.dataDir; if the old cluster is gone " +
				"for good, remove cluster.json from paths.state",
		},
		{
			HostConflict, "another host has the same ID, name or peer URL, or all others use another cluster.name",
			"set host.name, host.id and etcd.peerURL to values of its own, and cluster.name to that of the other hosts",
		},
		{TargetMet, "as many voters and standbys as wanted", ""},
		{
			FoundingWaits, "the listed hosts do not all agree yet that there is no cluster and that the first makes it",
			"see to the host that is named: that its quorumd runs, the port of its URL in " +
				"bootstrap.hosts answers, and its list is the same. Where hosts stand by an earlier attempt and " +
				"there is surely no " +
				"cluster: stop quorumd on all listed hosts, remove founding.json from paths.state of each, and start " +
				"quorumd again",
		},
	}
}

// hostReasons are those of a host that is not fit to join or to vote.
func hostReasons() []ReasonInfo {
	return []ReasonInfo{
		{HealthUnknown, "there is no verdict on the host yet, or none that is fresh", "quorumctl health"},
		{
			NotQualified, "the host has not passed its qualifying run",
			"quorumctl health; see whether the disk is fit for etcd",
		},
		{HealthBad, "the verdict forbids it", "quorumctl health"},
		{
			CommonCause, "several members look sick together, so the cause is probably not one host",
			"look for what they share: storage, network, power, a change of today",
		},
		{VersionUnknown, "the version of etcd is not known", "check etcd.binary"},
		{
			VersionUnsafe, "etcd is older than membership can be managed with safely",
			"upgrade to at least 3.5.31 or 3.6.12 (package quorumd-etcd), or set cluster.allowUnsafeVersion: true",
		},
		{
			VersionUntested, "etcd is newer than the versions that quorumd is tested with",
			"upgrade quorumd, or install an older etcd (package quorumd-etcd); override: " +
				"cluster.allowUnsafeVersion: true",
		},
		{
			VersionIncompatible, "this host's etcd must not join that cluster",
			"install the etcd version that the cluster runs, or the next minor one",
		},
		{ClockUnknown, "no voter tells the time to compare with", "check that the voters' client URLs answer /version"},
		{ClockSkew, "this host's clock is off", "set the clock: chronyc makestep, timedatectl"},
		{SpaceLow, "less than twice the database is free", "free space on the file system of etcd.dataDir"},
		{
			SpaceNotKnown, "it is not known how much space is free for etcd",
			"if it goes on, see whether the file system of etcd.dataDir answers: df, journalctl -u quorumd",
		},
		{UnitUnusable, "the etcd unit cannot be used", "check etcd.unit, and that it is installed and not masked"},
		{
			EtcdExternal, "others run etcd on this host, and quorumd neither starts nor stops it",
			"whoever runs it starts and stops it, when this host has its turn (quorumctl maintenance); for quorumd " +
				"to have it done, lay the programs start and stop in /etc/quorumd/hooks/etcd.d",
		},
		{
			UnitNotKnown, "it is not known how the etcd unit is",
			"if it goes on, see whether systemd answers quorumd: systemctl status, journalctl -u quorumd",
		},
		{UnitDisabled, "nothing starts etcd on this host after a boot", "systemctl enable " + OurUnit},
		{
			UnitBusy, "etcd runs on this host, but not as a member of this cluster",
			"stop it, if it is not needed: systemctl disable --now " + OurUnit,
		},
		{
			UnitStopped, "somebody has stopped etcd here, so it stays stopped",
			"when it is to run again: systemctl start " + OurUnit,
		},
		{
			DefaultCluster, "etcd was started here without settings and made a cluster of one on localhost",
			"if it contains no keys: systemctl stop " + OurUnit + ", then rename the directory member in " +
				"etcd.dataDir; this host then joins as one without data (see 'A cluster that etcd made by " +
				"default' in the runbook of QuorumdNeedsSomebody)",
		},
		{
			DataUnusable, "there is data that quorumd will not touch",
			"look at etcd.dataDir; move it away if nobody needs it",
		},
		{
			DataNotKnown, "it is not known what lies in etcd's data directory",
			"if it goes on, see whether the file system of etcd.dataDir answers: df, journalctl -u quorumd",
		},
		{
			Ejected, "another host has taken this one's place, and it joins again when it has been well for a while",
			"wait; see why it was lost: quorumctl history. Once that is mended, repair.cleanFor: 0s in quorumd.yaml " +
				"here and systemctl reload quorumd let it join at once",
		},
		{BackingOff, "the last join failed, the next try is a while off", "quorumctl history shows why"},
	}
}

// joinReasons are those why a host does not join now, and how a join ends.
func joinReasons() []ReasonInfo {
	return []ReasonInfo{
		{
			VoterNotLive, "a voter does not answer a linearizable read",
			"start etcd there, or see why it is cut off; if its machine is gone for good: quorumctl member remove " +
				"NAME --reason '<why>'",
		},
		{Settling, "the membership has changed, or an operation has ended, just now", ""},
		{
			LearnerPresent, "etcd allows one learner at a time",
			"wait, if that host is joining; if its learner is gone for good: quorumctl member remove NAME --reason " +
				"'<why>'",
		},
		{
			EvenVoters, "one more voter would make their number even, and no other host is ready to follow",
			"bring one more host to health OK",
		},
		{OperationInFlight, "another host is in an operation", "quorumctl op show"},
		{LockHeld, "another agent holds the lock", ""},
		{NotMyTurn, "another host goes first", ""},
		{LearnerBehind, "the learner has not caught up", ""},
		{LearnerNotSteady, "the learner has caught up, but not for long enough", ""},
		{LearnerNotStarted, "the learner's etcd does not answer yet", ""},
		{LearnerStalled, "the learner has made no progress", "journalctl -u etcd on that host"},
		{JoinTooLong, "the join has lasted too long", "journalctl -u etcd on that host"},
		{HealthLost, "the host has become unfit while it joined", "quorumctl health on that host"},
		{HostRebooted, "the host has rebooted while it joined", ""},
		{
			Orphaned, "the agent of the host that began the operation is gone",
			"see why quorumd on that host does not answer",
		},
		{
			Disowned, "the operation was recorded for a host that has not begun it",
			"quorumctl history, and see who can write below quorumd's prefix in etcd: whoever can is an operator",
		},
		{Joined, "the host has joined", ""},
		{ClusterExists, "a cluster exists already, so none is made", ""},
		{Starting, "etcd is on its way up", ""},
	}
}

// backupReasons are about the snapshots of the cluster.
func backupReasons() []ReasonInfo {
	return []ReasonInfo{
		{
			BackupOld, "the newest snapshot of the cluster is older than it should get",
			"quorumctl status says who takes the next one and what keeps it; quorumctl snapshot save takes one now",
		},
		{
			BackupFailed, "the last snapshot of the cluster that was tried was not saved",
			"mend what is named; it is tried again by itself within ten minutes, or at once: quorumctl snapshot save",
		},
		{
			SnapshotFirst, "a rollout to another etcd, or the removal of a voter that is well, waits for a snapshot",
			"wait; if none can be taken, mend what is named; or quorumctl rollout abort, and start it again with " +
				"--without-snapshot; before a removal: quorumctl snapshot save",
		},
		{
			RestoreUnproven, "no snapshot of the cluster was proven to restore for long",
			"quorumctl status says who proves the next one and what keeps it; quorumctl snapshot drill proves one now",
		},
		{
			RestoreFailed, "the last snapshot that was restored to prove it was not served as it was taken",
			"quorumctl snapshot save takes a new one, if it is damaged; quorumctl snapshot drill tries again",
		},
	}
}

// recoveryReasons are those of a cluster that has lost its majority.
func recoveryReasons() []ReasonInfo {
	return []ReasonInfo{
		{
			Recovering, "a plan is carried out that brings back a cluster which has lost its majority",
			"quorumctl recover status shows how far it is; what it names as failed is tried again once it is mended",
		},
		{Recovered, "the cluster was brought back, and this host's part in that is done", ""},
		{QuorumBack, "the cluster has a quorum again, so that the plan to recover it was given up", ""},
	}
}

// memberReasons are those of a member: it is down, is taken down, comes back, or is removed.
func memberReasons() []ReasonInfo {
	return []ReasonInfo{
		{
			MemberLost, "this host is listed as a member whose data is gone from here, so it cannot come back",
			"after maintenance this host joins again by itself, when the other voters allow it; otherwise, if its " +
				"disk is only not mounted, mount it; if the data is gone, on another host: quorumctl member remove " +
				"NAME --reason '<why>', and this host joins again",
		},
		{MemberDown, "this host's member does not answer", "look at etcd's log on this host, and at its disk"},
		{StepFailed, "the step was tried and has failed; it is tried again", "quorumctl history"},
		{
			QuorumAtRisk, "the other voters cannot spare this one",
			"bring all other voters to answer and to health OK; see quorumctl status",
		},
		{LearnerUnsettled, "a learner is being filled", "wait; if it is gone for good: quorumctl member remove"},
		{CycleQueued, "another host is taken down first", ""},
		{InMaintenance, "the host is in maintenance", "quorumctl maintenance off, when the work is done"},
		{
			MaintenanceOverdue, "the maintenance has lasted longer than was said",
			"quorumctl maintenance off, when the work is done; or maintenance on again with a longer --for",
		},
		{
			RebootAwaited, "the machine is ready to reboot, and has not yet",
			"reboot it; or quorumctl maintenance off, if it is not to be rebooted",
		},
		{
			VerdictAwaited, "another voter's host has not said how it is since this host's turn began",
			"if it goes on, see on that host whether quorumd runs and is as new as here: quorumctl version",
		},
		{
			LeaderStays, "the leadership cannot be moved to another voter",
			"see etcd's log on this host; quorumctl maintenance off withdraws what was asked",
		},
		{
			LeaderSlow, "this host leads, its verdict says that it should not, and it has not handed over yet",
			"mend what quorumctl health names; where no voter is better, bring one to health OK",
		},
		{HookRunning, "the operator's hooks are still running", ""},
		{
			HookFailed, "a hook has failed, and the hosts that follow in its rollout wait for a person",
			"see the journal for its output, and mend it; if it ran after etcd was back, quorumctl maintenance off " +
				"ends the turn all the same",
		},
		{CommandRunning, "the command that this host is taken down for has not ended", ""},
		{
			CommandFailed,
			"the command that the host was taken down for has failed, and the hosts that follow in its " +
				"rollout wait for a person",
			"see the journal for its output, and mend it; then quorumctl rollout resume, or ask again",
		},
		{Stopping, "etcd is on its way down", ""},
		{Returning, "the member is coming back", ""},
		{
			NotBack, "the member has been back for too long without being well, and the hosts that follow wait for it",
			"journalctl -u etcd and quorumctl health on this host; if it is gone for good: quorumctl op release " +
				"--force",
		},
		{Cycled, "the host was taken down and is back", ""},
		{
			RecordUnreadable, "a record of quorumd's in etcd cannot be read, and what depends on it waits",
			"what is named after its key; see who else writes under /quorumd/, and that all agents are of one version",
		},
		{Withdrawn, "what was asked was withdrawn, its operation was released, or what it was for is so no more", ""},
		{
			MemberLive, "the voter that is to be removed answers, or has until just now",
			"if it is to go all the same: quorumctl member remove NAME --live --reason '<why>'",
		},
		{Removed, "the member was removed, as a person asked or since one voted too many", ""},
		{
			VoterDead, "a voter is dead: no live voter's host reaches it, and quorumd does not answer there either",
			"see to its machine; if it is gone for good: quorumctl member remove NAME --reason '<why>'. Where " +
				"repair.dead is set in quorumd.yaml another host takes the place of such a voter by itself after " +
				"that time",
		},
		{
			VoterSick, "a voter's host is not well, by its own verdict and by what else is known of its member",
			"quorumctl health on that host names what is wrong; mend it. Where repair.sick is set in quorumd.yaml " +
				"another host takes the place of such a voter by itself after that time",
		},
		{
			VoterSuspect, "a voter's host is not well by its own verdict, and nothing else is known that bears it out",
			"quorumctl health on that host names what is wrong; mend it. If the member does harm all the same: " +
				"quorumctl member remove NAME --live --reason '<why>'",
		},
		{
			StandbyLost, "the standby is lost: nobody reaches it, it does not follow the leader, or it is sick",
			"see to its machine, and journalctl -u etcd there; another host takes its place once one stands ready",
		},
		{
			VotersSurplus, "more hosts vote than are wanted, and none of them is to go by itself",
			"quorumctl history shows who came last, and in whose place; start quorumd where none runs, and take one " +
				"out: quorumctl member remove NAME --live --reason '<why>'; or raise cluster.voters on all hosts",
		},
		{
			RepairsSpent, "as many voters as may be were replaced within a day, so the next one waits for a person",
			"see why machines die: quorumctl history; then quorumctl member remove NAME --reason '<why>', or raise " +
				"repair.perDay",
		},
	}
}

// Info gives the declaration of a code.
func (c ReasonCode) Info() ReasonInfo {
	for _, info := range Reasons() {
		if info.Code == c {
			return info
		}
	}
	return ReasonInfo{Code: c}
}

// Reason is a code with what was seen.
type Reason struct {
	Code ReasonCode
	Text string // with the numbers
}

// Decision is what to do next, and why not more.
type Decision struct {
	Step    Step
	Reasons []Reason // the first is the one that counts; at least one when there is no step
	// Would is the step that is withheld because the agent only observes or is paused.
	Would Step
	Role  Role
	// Waiting is the host's own reason not to go next, whatever the others do; empty when it is
	// ready. It is published, so that the others know whom to wait for.
	Waiting ReasonCode
	// Again asks to look again after so long, if that is before the next round: this host is the next, or
	// waits for programs that were started. 0: it does not. Behind are the IDs of the hosts whose records it wants to
	// see then.
	Again  time.Duration
	Behind []string
	First  bool  // it is a spare that is ready, and nobody else goes first
	Quiet  bool  // nothing is to do and nothing is going on: the members need not be asked in each round
	Notes  Notes // what this host's disk is to say, whatever the step
}
