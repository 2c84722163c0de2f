// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// memberReasons returns the reasons of a member that is down, taken down, coming back or removed.
func memberReasons() []ReasonInfo {
	return []ReasonInfo{
		{
			MemberLost, "this host's member has lost its data and cannot come back",
			"after maintenance this host rejoins by itself once the other voters allow it; otherwise mount its " +
				"disk, if it is not mounted; if the data is gone, on another host: quorumctl member remove " +
				"NAME --reason '<why>', and this host rejoins",
		},
		{MemberDown, "this host's member does not answer", "check etcd's log and the disk on this host"},
		{StepFailed, "the step failed and is retried", "quorumctl history"},
		{
			QuorumAtRisk, "stopping this voter would put quorum at risk",
			"bring all other voters up and to health OK; see quorumctl status",
		},
		{
			LearnerUnsettled, "a learner has not caught up yet",
			"wait; if it is gone for good: quorumctl member remove NAME --reason '<why>'",
		},
		{CycleQueued, "the host's requested operation is queued", ""},
		{
			InMaintenance, "the host is in maintenance or another requested operation",
			"quorumctl maintenance off, when the work is done",
		},
		{
			MaintenanceOverdue, "the host's operation has exceeded its announced duration",
			"quorumctl maintenance off, when the work is done; to extend it: quorumctl maintenance on " +
				"--reason '<why>' --for 4h, with --interruptible if that was set",
		},
		{
			RebootAwaited, "the machine is ready to reboot, but has not rebooted yet",
			"reboot it, or cancel: quorumctl maintenance off",
		},
		{
			HealthAwaited, "a host has not yet published a report that this operation needs",
			"if it persists, check that quorumd runs on that host, and has the same version as here: quorumctl version",
		},
		{
			LeadershipNotTransferred, "leadership cannot be transferred to another voter",
			"check etcd's log on this host; quorumctl maintenance off cancels a request to take this host down",
		},
		{
			LeaderSlow, "this host leads although its health state rules that out; leadership has not been " +
				"transferred yet",
			"fix what quorumctl health reports; if no voter is better, bring one to health OK",
		},
		{HookRunning, "the operator's hooks are still running", ""},
		{
			HookFailed, "a hook failed; if it ran for a rollout, the rollout waits for an operator",
			"check its output in the journal and fix it; if it ran after etcd was back, quorumctl maintenance off " +
				"ends the operation anyway",
		},
		{CommandRunning, "the command this host was taken down for is still running", ""},
		{
			CommandFailed,
			"the command this host was taken down for failed; if it was part of a rollout, the rollout " +
				"waits for an operator",
			"check its output in the journal and fix it; then quorumctl rollout resume, or request it again",
		},
		{Stopping, "etcd is stopping", ""},
		{Returning, "the member is coming back", ""},
		{
			NotBack, "the member has not become healthy in time after its operation; the next hosts wait for it",
			"journalctl -u etcd and quorumctl health on this host; if it is gone for good, power it off, then on " +
				"another host: quorumctl retire HOST --lost --reason '<why>'",
		},
		{Cycled, "the host was taken down and is back", ""},
		{
			RecordUnreadable, "a quorumd record in etcd cannot be read; steps that depend on it wait",
			"follow the hint after the record's key; check who else writes under /quorumd/ and that all agents run " +
				"the same version",
		},
		{Cancelled, "the request was cancelled, its operation was released, or it is no longer needed", ""},
		{
			MemberLive, "the voter to remove answers, or answered until just now",
			"to remove it anyway: quorumctl member remove NAME --live --reason '<why>'",
		},
		{Removed, "the member was removed: on request, as a surplus voter, or to make the cluster smaller", ""},
	}
}

// otherMemberReasons returns the reasons about other members, and about repairs.
func otherMemberReasons() []ReasonInfo {
	return []ReasonInfo{
		{
			VoterDead, "a voter is dead: no live voter's host reaches it, and the quorumd there is gone or reports " +
				"its data lost",
			"check its machine; if it is gone for good: quorumctl member remove NAME --reason '<why>'. If " +
				"repair.dead is set in quorumd.yaml, another host replaces such a voter after that time",
		},
		{
			VoterUnhealthy, "a voter is unhealthy: its own health state and independent evidence agree",
			"quorumctl health on that host shows the cause; fix it. If repair.unhealthy is set in quorumd.yaml, " +
				"another host replaces such a voter after that time",
		},
		{
			VoterSuspect, "a voter's host reports itself unhealthy, but no other evidence confirms it",
			"quorumctl health on that host shows the cause; fix it. If the member harms the cluster anyway: " +
				"quorumctl member remove NAME --live --reason '<why>'",
		},
		{
			StandbyLost, "the standby is lost: it is unreachable, does not follow the leader, or is unhealthy",
			"check its machine, and journalctl -u etcd there; another host replaces it once one is ready",
		},
		{
			TooManyVoters, "the cluster has more voters than its size",
			"if the cluster was resized, wait; otherwise quorumctl cluster resize N --reason '<why>': with the " +
				"intended size, surplus voters leave; with the current number of voters, all stay",
		},
		{
			RepairLimitReached, "repair.maxPerDay is reached: the next replacement waits until fewer voters were " +
				"replaced in 24 h",
			"find out why machines fail: quorumctl history; then quorumctl member remove NAME --reason '<why>', " +
				"or raise repair.maxPerDay",
		},
	}
}
