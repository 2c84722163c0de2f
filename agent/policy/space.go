// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// While the NOSPACE alarm is active, etcd rejects every write that could need space, and every new lease. So no
// agent can take the lock, and its holder cannot record anything. If space.noSpace is remediate, one agent frees
// space. If the space in use is at least livePercent of a quota, a defragmentation alone would not help, so the
// agent compacts the history of the keys. It defragments the databases that fill at least overPercent of their
// quotas, one at a time and online, and then disarms the alarm.
//
// The holder of the lock may free space, and its operation waits meanwhile. If no agent holds the lock, an agent
// claims a permit by deleting a key that was written before the alarm. etcd still accepts a transaction that only
// deletes, and exactly one agent can delete the key. A permit is valid for PermitValid after the claim. The next
// permit may be claimed once PermitTaken has passed since the claim.

const (
	// MaxPermits is how many agents may try, one after another, to free space for one alarm.
	MaxPermits = 3
	// PermitValid is for how long an agent acts under the permit that it claimed. It is longer than the maximum of
	// space.retain, for which the agent may have to wait first.
	PermitValid = 20 * time.Minute
	// DefragmentMax is the longest time that an agent waits for an online defragmentation.
	DefragmentMax = 15 * time.Minute
	// DefragmentAgain is the time after which a defragmentation that failed or had no effect is tried again: by then,
	// keys may have been deleted.
	DefragmentAgain = 5 * time.Minute
	// PermitTaken is how long after a claim the next permit may be claimed.
	PermitTaken = PermitValid + DefragmentMax
	// PermitSettle is how long there must have been no alarm before agents write new permits. By then every agent
	// has either observed that the alarm is over, or not observed the cluster for so long that its permit has become
	// invalid.
	PermitSettle = time.Minute
	// A database of at least overPercent of its quota is too large to disarm the alarm: etcd would soon raise it again.
	overPercent = 90
	// If the data in use is at least livePercent of the quota, a defragmentation does not help.
	livePercent = 80
	// compactSettle is how long the members may take to remove what a compaction has released.
	compactSettle = time.Minute
)

// Space is what this host has observed about freeing space.
type Space struct {
	Remediate  bool          // the configuration lets agents free space after a NOSPACE alarm
	Permits    int           // unclaimed permits in etcd, at most MaxPermits
	PermitsFor time.Duration // for how long this agent has observed this number
	RoomyFor   time.Duration // for how long this agent has observed that there is no NOSPACE alarm
	Mine       time.Duration // for how long this agent's own permit is still valid; 0 if it has none
	// Keep is the oldest revision that a compaction must keep: the revision that was current space.retain ago. It is 0
	// if this agent has not run for that long.
	Keep      int64
	Compacted time.Duration // time since this agent last compacted the keys for this alarm, or Never
	Kept      int64         // the oldest revision that the last compaction kept; 0 if there was none
	// Attempts are the online defragmentations for this alarm that have ended since the last compaction and less than
	// DefragmentAgain ago.
	Attempts []DefragAttempt
	// Defragmenting is the member that this agent has asked to defragment its database and that has not finished, or
	// has finished since the members' statuses were last read; 0 if there is none.
	Defragmenting uint64
	Automatic     AutomaticDefrag
}

// DefragAttempt is an online defragmentation that has ended.
type DefragAttempt struct {
	MemberID uint64
	Failed   string // its error; empty if it succeeded
}

// Over reports whether a database is too large to disarm the alarm; false if its quota is unknown.
func (d Database) Over() bool { return d.exceeds(d.Size, overPercent) }

// exceeds reports whether a number of bytes is at least that percentage of the quota; false if the quota is unknown.
func (d Database) exceeds(bytes, percent int64) bool {
	return d.Quota > 0 && bytes >= d.Quota/100*percent
}

// freeSpace ends a NOSPACE alarm, if this agent may.
func freeSpace(v View) (Decision, bool) {
	if !v.Space.Remediate || v.Self.Mode != Manage || !v.Cluster.Reachable || v.foreign() || v.Cluster.Roomy ||
		!v.Cluster.agrees() {
		return Decision{}, false
	}
	switch {
	case v.Lock.Mine && v.Op == nil:
		return do(Step{Kind: StepReleaseLock, Why: "no operation begins during a NOSPACE alarm"}), true
	case v.Lock.Held && !v.Lock.Mine:
		return Decision{}, false
	case v.Space.Mine == 0 && !v.Lock.Mine:
		return claimPermit(v)
	}
	return orOwnStart(v, remedy(v)), true
}

// orOwnStart replaces a decision that only waits by the step that writes the environment of this host's etcd or starts
// it, if such a step is due.
func orOwnStart(v View, d Decision) Decision {
	if d.Step.Kind != StepNone {
		return d
	}
	for _, part := range []func(View) (Decision, bool){ownOperation, ownUnit} {
		own, decided := part(v)
		if starts := own.Step.Kind == StepStartUnit || own.Step.Kind == StepWriteEnv; decided && starts {
			own.Reasons = append(own.Reasons, d.Reasons...)
			return own
		}
	}
	return d
}

// remedy returns the next step that frees space, or why there is none.
func remedy(v View) Decision {
	if id := v.Space.Defragmenting; id != 0 {
		m, _ := v.memberByID(id)
		return wait(FreeingSpace, "member %s is defragmenting its database", m.label())
	}
	if m, may := v.mayDefragment(); may {
		return wait(EtcdNoSpace, "member %s has not answered for %s, so it might be defragmenting its database; only "+
			"one member does that at a time", m.label(), durationfmt.Seconds(m.SilentFor))
	}
	var over []Member
	for _, m := range v.Cluster.Members {
		switch { // if a member that does not answer is over its quota when it returns, it raises the alarm again
		case m.Live && m.Database.Quota == 0:
			return wait(EtcdNoSpace, "the quota of member %s is unknown, because only etcd 3.6 and newer report it; "+
				"free space by hand", m.label())
		case m.Live && m.Database.Over():
			over = append(over, m)
		}
	}
	if len(over) == 0 {
		return do(Step{
			Kind: StepDisarmNoSpace,
			Why:  fmt.Sprintf("every database is below %d %% of its quota", overPercent),
		})
	}
	live, known := v.liveData()
	i := slices.IndexFunc(over, func(m Member) bool { return known && m.Database.exceeds(live, livePercent) })
	if i >= 0 && (len(v.Space.Attempts) > 0 || v.Space.Compacted < compactSettle || v.Space.Compacted == Never) {
		return compact(v, over[i], live)
	}
	return defragmentOnline(v, over)
}

// liveData returns the smallest number of bytes in use by a voter that has caught up, because all members hold the same
// keys. A member counts what a compaction has released as in use until it writes again, which the alarm prevents: only
// a defragmentation shows what is really in use.
func (v View) liveData() (live int64, known bool) {
	for m := range v.Cluster.voters() {
		d := m.Database
		if !m.Live || !m.LagKnown || m.Lag > v.Limits.PromoteLag || d.InUse <= 0 || d.InUse > d.Size {
			continue
		}
		if !known || d.InUse < live {
			live, known = d.InUse, true
		}
	}
	return live, known
}

// claimPermit claims a permit to free space, unless another agent may be freeing space, or this agent could not free
// any.
func claimPermit(v View) (Decision, bool) {
	next := remedy(v)
	useful := next.Step.Kind != StepNone || next.Reasons[0].Code == FreeingSpace
	if permitAwaited(v) != "" || !useful || !v.HostsFresh || v.Health.Hangs || v.Self.Conflict != "" {
		return Decision{}, false
	}
	return do(Step{Kind: StepClaimPermit, Why: v.Cluster.Alarms}), true
}

// permitAwaited returns why this agent may not claim a permit to free space now; empty if it may. Only the agents of
// voters claim one, because they read the cluster state in every round.
func permitAwaited(v View) string {
	m, listed := v.member()
	switch left := PermitTaken - v.Space.PermitsFor; {
	case v.Lock.Held:
		return "only the holder of the lock may free space: " + v.Lock.Holder
	case !listed || m.Learner:
		return "only the agent of a voter may free space"
	case v.Space.Permits == 0:
		return fmt.Sprintf("no permit is left: %d agents have tried, or space.noSpace was set after the alarm; free "+
			"space by hand", MaxPermits)
	case v.Space.Permits < MaxPermits && left > 0:
		return "another agent has claimed the permit to free space; the next one may try in " +
			durationfmt.Seconds(left)
	}
	return ""
}

// compact removes old revisions, because the live data is too large for a defragmentation to help.
func compact(v View, m Member, inUse int64) Decision {
	live := fmt.Sprintf("%s of data, quota of member %s: %s", MiB(inUse), m.label(), MiB(m.Database.Quota))
	switch {
	case v.Space.Compacted < compactSettle:
		return wait(FreeingSpace, "the members are removing compacted revisions: %s", live)
	case v.Space.Kept > 0 && v.Space.Kept >= v.Space.Keep:
		return wait(EtcdNoSpace, "%s; a compaction has not changed that: delete keys, or raise "+
			"--quota-backend-bytes", live)
	case v.Space.Keep == 0:
		return wait(FreeingSpace, "a compaction keeps the revisions of the last space.retain, and this agent has "+
			"not been running for that long: %s", live)
	}
	return do(Step{Kind: StepCompact, Revision: v.Space.Keep, Why: live})
}

// defragmentOnline defragments the next database. It waits if one of the databases was defragmented within
// DefragmentAgain and is still too large, or if that defragmentation failed. The leader comes last, and transfers its
// leadership first if another voter may lead, because a leader answers no renewal of a lease during a defragmentation.
func defragmentOnline(v View, over []Member) Decision {
	tried := func(m Member) (DefragAttempt, bool) {
		i := slices.IndexFunc(v.Space.Attempts, func(a DefragAttempt) bool { return a.MemberID == m.ID })
		if i < 0 {
			return DefragAttempt{}, false
		}
		return v.Space.Attempts[i], true
	}
	for _, m := range over {
		switch attempt, was := tried(m); {
		case was && attempt.Failed != "":
			return wait(StepFailed, "cannot defragment the database of member %s: %s", m.label(), attempt.Failed)
		case was:
			return wait(EtcdNoSpace, "the database of member %s is too large even after a defragmentation: %s of a "+
				"quota of %s; raise --quota-backend-bytes", m.label(), MiB(m.Database.Size), MiB(m.Database.Quota))
		}
	}
	next := over[0]
	if i := slices.IndexFunc(over, func(m Member) bool { return !m.Leader }); i >= 0 {
		next = over[i]
	}
	if next.Leader {
		for m := range v.Cluster.voters() {
			alarmed := m
			alarmed.Errors = false // every member's status reports the alarm
			if m.Leader || !m.Live || m.Database.Over() || v.againstLeader(alarmed) != nil {
				continue
			}
			return do(Step{
				Kind: StepLeadElsewhere, MemberID: m.ID,
				Why: fmt.Sprintf("to %s, before the database of %s is defragmented", m.label(), next.label()),
			})
		}
	}
	return do(Step{
		Kind: StepDefragmentOnline, MemberID: next.ID,
		Why: fmt.Sprintf("%s: %s, quota %s", next.label(), next.Database.FreeText(), MiB(next.Database.Quota)),
	})
}

// writePermits writes the permits that the next NOSPACE alarm needs.
func writePermits(v View) (Decision, bool) {
	s := v.Space
	if !s.Remediate || v.Self.Mode != Manage || !v.HostsFresh || !v.Cluster.Reachable || v.foreign() ||
		s.Permits >= MaxPermits || s.RoomyFor < PermitSettle || v.Pause != nil ||
		v.Failed.Kind == StepWritePermits && v.Failed.Denied {
		return Decision{}, false
	}
	return do(Step{Kind: StepWritePermits, Why: "so that one agent can free space after a NOSPACE alarm"}), true
}

// mayDefragment returns a member that might be defragmenting its database because an agent requested that before it
// died or lost the lock: a voter that is defragmenting answers no reads. A learner may defragment unnoticed, which does
// not affect the quorum.
func (v View) mayDefragment() (Member, bool) {
	for _, m := range v.Cluster.Members {
		stopped := m.PeerURL == v.Self.PeerURL && !unitRuns(v)
		if !m.Live && !stopped && m.SilentFor < PermitTaken {
			return m, true
		}
	}
	return Member{}, false
}

// fullDatabase blocks all later concerns while the NOSPACE alarm is raised. This host's request is an earlier concern,
// because a larger quota needs a restart of etcd.
func fullDatabase(v View) (Decision, bool) {
	d, holds := awaitDisarm(v, vetoNoSpace)
	if holds && v.Space.Remediate && v.Self.Mode == Manage && v.Pause == nil {
		if text := permitAwaited(v); text != "" {
			d.Reasons = append(d.Reasons, Reason{EtcdNoSpace, text})
		} else {
			d.Reasons = append(d.Reasons, remedy(v).Reasons...)
		}
	}
	return d, holds
}

func spaceReasons() []ReasonInfo {
	return []ReasonInfo{
		{FreeingSpace, "this host frees space, so that etcd accepts writes again", ""},
		{
			QuotasDiffer,
			"the voters have different quotas for their databases; the voter with the smallest one raises the " +
				"NOSPACE alarm first, and then no member accepts writes",
			"set the same ETCD_QUOTA_BACKEND_BYTES in etcd.environment on every host and reload quorumd, then " +
				"quorumctl rollout start restart --reason '<why>'",
		},
	}
}
