// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

// kind identifies a kind of event.
type kind uint8

const (
	// Agents.
	evRound kind = iota // an agent decides; odd arg: its host ranks after equally good hosts; arg/2: its viewpoint
	evAct               // an agent begins its step, and completes it if the step takes no time
	// A membership change or an unfenced call takes effect and is answered. With arg 1, it fails although it could
	// succeed.
	evLand
	evTimeout // the membership change is not answered in time and may land later
	evLateAdd // a membership change that was not answered in time takes effect
	evLatePromote
	evLateUpdate
	evLateRemove
	evLateWrite

	// etcd, systemd and time.
	evUnitChanges // arg 1: the other outcome, if there are two; see unitChanges
	evProgress
	evLearnerLags
	evRetryDue
	evSettled
	evCooled
	evStalled
	evBackoffOver
	evEjectionWaitOver // an ejected host has been healthy for long enough
	evOrphaned
	evRecordAges
	evServed
	evCommandEnds // arg 1: the command fails
	evValidityOver
	evGraceOver // a voter or a standby has been dead, or a voter unhealthy, for the grace period
	evReported  // every voter's agent has reported again
	evConnected // the running members connect to the registered peer URL of a host's member
	evLeaseOver

	// The end of faults, and the progress of requests.
	evAgentStarts
	evAgentResumes
	evHostBoots
	evLinkHeals
	evMemberHeals
	evReachHeals
	evHealthy
	evOperatorResumes
	evAlarmEnds
	evOperatorStarts
	evRequestEnds
	evReboots
	evExternalStop // an external manager stops a host's etcd, because the host is reported safe to stop

	// Operators' requests, which have a budget of their own.
	evRequest        // arg: the requested work, starting at 1
	evRequestRemoval // arg/2: the host whose member is to be removed; odd arg: it is removed even if it answers
	evRemovalExpires
	evRequestTransfer // arg: the host to whose voter leadership is to be transferred
	evTransferExpires
	evRetire  // an operator retires a host, undoes that, or changes its successor; for arg, see retire
	evRaised  // an operator restarts the etcd that has a lower limit on learners, so that it uses the configured one
	evDecided // an operator resumes or aborts the upgrade
	evResize  // an operator resizes the cluster, or restores its previous size

	// Faults and operators' actions.
	evAgentDies
	evAgentPauses
	evEtcdDies
	evHostDies
	evLinkCut
	evMemberCut
	evReachLost
	evHealthChanges // arg: the new health state
	evTooLong
	evFallsBehind
	evOperatorPauses
	evOperatorReleases
	evOperatorStops
	evAlarm   // etcd raises the alarm of the scenario
	evForged  // another program writes the record of a join that its host has not begun
	evDeleted // another program deletes the operation record
	evSwapped // the disk of a host in maintenance, or of a retired learner, is replaced by an empty one
	evLowered // an operator restarts an etcd with the limit 1 on learners
	kinds
)

// event is one event, at one host unless it is global.
type event struct {
	kind kind
	host uint8
	arg  uint8
}

// Faults is a set of classes of faults.
type Faults uint32

// The classes. Each can be left out of a scenario.
const (
	AgentCrash      Faults = 1 << iota // the agent's process dies
	AgentPause                         // the agent's process is stopped for longer than its lock is valid
	EtcdCrash                          // the etcd process dies
	HostCrash                          // the host goes down and boots again
	AgentCutOff                        // the agent reaches no endpoint
	MemberCutOff                       // the member reaches no other member, in one or both directions
	AgentBlind                         // the agent reaches no other member, but reads the member list
	HealthChange                       // a health state becomes SLOW or UNKNOWN
	ClockChange                        // a host's clock becomes wrong
	LateCall                           // a call is not answered in time, and lands later or never
	Slowness                           // a join lasts too long, or a learner falls behind
	OperatorPause                      // an operator pauses the cluster
	OperatorRelease                    // an operator releases the operation
	OperatorStop                       // an operator stops etcd
	Forgery                            // another program writes or deletes the record of an operation
	AllFaults              = 1<<iota - 1
	Alarm           Faults = AllFaults + 1 // etcd raises an alarm; not part of AllFaults
	Swap            Faults = 2 * Alarm     // a disk is replaced (see evSwapped); not part of AllFaults
	LimitChange     Faults = 2 * Swap      // an etcd is restarted with a lower limit on learners; not part of AllFaults
)

// class returns the fault class of an event, or 0 if the event is not a fault.
func (e event) class() Faults {
	switch e.kind {
	case evAgentDies:
		return AgentCrash
	case evAgentPauses:
		return AgentPause
	case evEtcdDies:
		return EtcdCrash
	case evHostDies:
		return HostCrash
	case evLinkCut:
		return AgentCutOff
	case evMemberCut:
		return MemberCutOff
	case evReachLost:
		return AgentBlind
	case evHealthChanges:
		if e.arg == clockWrong {
			return ClockChange
		}
		return HealthChange
	case evTooLong, evFallsBehind:
		return Slowness
	case evOperatorPauses:
		return OperatorPause
	case evOperatorReleases:
		return OperatorRelease
	case evOperatorStops:
		return OperatorStop
	case evAlarm:
		return Alarm
	case evForged, evDeleted:
		return Forgery
	case evSwapped:
		return Swap
	case evLowered:
		return LimitChange
	}
	return 0
}

// global reports whether the event belongs to no host.
func (k kind) global() bool {
	switch k {
	case evLearnerLags, evSettled, evCooled, evStalled, evOrphaned, evRecordAges, evServed, evReported, evLeaseOver,
		evOperatorResumes, evAlarm, evAlarmEnds,
		evTooLong, evOperatorPauses, evOperatorReleases, evDeleted, evRemovalExpires, evTransferExpires, evRaised,
		evResize, evDecided:
		return true
	}
	return false
}

// args returns the number of variants of an event. It does not count those of evRetire that name or clear a successor;
// machine.args does.
func (k kind) args() uint8 {
	switch k {
	case evRound:
		return 2 * viewpoints
	case evAct:
		return 3
	case evUnitChanges, evLand, evLateWrite, evCommandEnds:
		return 2
	case evRequest:
		return workCount
	case evRequestRemoval:
		return 2 * maxHosts
	case evRequestTransfer:
		return maxHosts
	case evHealthChanges:
		return 4
	}
	return 1
}

// args returns the number of variants of an event in the machine's scope. It leaves out the variants that need a host
// operation or an unhealthy leader if the scope has neither.
func (m *machine) args(k kind) uint8 {
	switch {
	case k == evRequestRemoval && m.Removals == 0, k == evRequestTransfer && m.Transfers == 0:
		return 0
	case k == evRequest && m.Requests+m.Removals == 0:
		return 0
	case k == evRetire && m.Successor:
		return clearsSuccessor + 1
	case m.Requests+m.Removals+m.ResizeTo+m.Retirements+m.Transfers > 0:
	case k == evRound && m.faults&HealthChange != 0: // an unhealthy leader transfers leadership
	case k.args() > 2 && k != evHealthChanges:
		return 2
	}
	return k.args()
}
