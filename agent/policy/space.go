// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// While the NOSPACE alarm is active, etcd rejects every write, leases included. So no agent can take the lock, and its
// holder cannot record anything. If space.noSpace is remediate, one agent frees space: it compacts the history of the
// keys if the live data alone fills the databases, defragments the databases that are over their quotas, one at a time
// and online, and then disarms the alarm.
//
// The holder of the lock may free space, and its operation waits meanwhile. If no agent holds the lock, an agent claims
// a permit: a key that was written before the alarm. etcd still accepts a transaction that only deletes, so exactly one
// agent can delete the key. The permit ends after PermitValid. PermitTaken after a permit was claimed, another agent may
// claim the next one.

const (
	// MaxPermits is how many agents may try, one after another, to free space for one alarm.
	MaxPermits = 3
	// PermitValid is for how long an agent acts under the permit that it claimed.
	PermitValid = 10 * time.Minute
	// PermitTaken is when the next permit may be claimed. The difference to PermitValid allows for a defragmentation that
	// began just before the permit ended.
	PermitTaken = 25 * time.Minute
	// permitSettle is for how long there must have been no alarm before agents write new permits: by then every agent has
	// seen that the alarm is over, and has forgotten its permit.
	permitSettle = time.Minute
	// overPercent of its quota is where a database is too large to disarm the alarm: etcd would soon raise it again.
	overPercent = 90
	// livePercent of its quota is where the data in use is too large for a defragmentation to help.
	livePercent = 80
	// compactSettle is how long the members may take to remove what a compaction has released.
	compactSettle = time.Minute
)

// Space is what this host knows about freeing space.
type Space struct {
	Remediate bool          // the configuration lets agents free space after a NOSPACE alarm
	Permits    int           // unclaimed permits in etcd, at most MaxPermits
	PermitsFor time.Duration // for how long this agent has observed this number
	RoomyFor  time.Duration // for how long this agent has observed that there is no NOSPACE alarm
	Mine      time.Duration // for how long this agent's own permit is still valid; 0 if it has none
	// Keep is the oldest revision that a compaction must keep: the current one of space.retain ago. 0 if this agent has
	// not run for that long.
	Keep      int64
	Compacted time.Duration // since this agent last compacted the keys for this alarm; or Never
	// Tried reports that a database has been defragmented since then.
	Tried bool
	Kept  int64 // the oldest revision that this compaction kept; 0 if there was none
	// Defragmenting is the member that this agent has asked to defragment its database and that has not finished; 0 if
	// there is none.
	Defragmenting uint64
}

// Over reports whether a database is too large to disarm the alarm.
func (d Database) Over() bool { return d.Quota > 0 && d.Size*100 >= d.Quota*overPercent }

// freeSpace ends a NOSPACE alarm, if this agent may.
func freeSpace(v View) (Decision, bool) {
	if !v.Space.Remediate || v.Self.Mode != Manage || !v.Cluster.Reachable || v.foreign() || v.Cluster.Roomy ||
		!v.Cluster.Intact {
		return Decision{}, false
	}
	if v.Asked != nil && v.Asked.Stopped { // the operation first starts the etcd that it has stopped
		return Decision{}, false
	}
	if v.Lock.Mine && v.Op == nil { // the lock is released first, because it serves for nothing
		return Decision{}, false
	}
	if v.Space.Mine == 0 && !v.Lock.Mine {
		return claimPermit(v)
	}
	if id := v.Space.Defragmenting; id != 0 {
		m, _ := v.memberByID(id)
		return wait(FreeingSpace, "member %s is defragmenting its database", m.label()), true
	}
	if m, may := v.mayDefragment(); may {
		return wait(EtcdNoSpace, "member %s has not answered for %s, and may be defragmenting its database: only one "+
			"member does that at a time", m.label(), durationfmt.Seconds(m.DownFor)), true
	}
	members, why := databases(v)
	if why != "" {
		return wait(EtcdNoSpace, "%s", why), true
	}
	over := slices.DeleteFunc(members, func(m Member) bool { return !m.Database.Over() })
	if len(over) == 0 {
		return do(Step{
			Kind: StepDisarmNoSpace,
			Why:  fmt.Sprintf("every database is below %d %% of its quota", overPercent),
		}), true
	}
	live := liveData(members)
	i := slices.IndexFunc(over, func(m Member) bool { return live*100 >= m.Database.Quota*livePercent })
	if i >= 0 && (v.Space.Tried || v.Space.Compacted < compactSettle || v.Space.Compacted == Never) {
		return compact(v, over[i], live), true
	}
	return defragmentOnline(v, over), true
}

// liveData returns the smallest number of bytes in use, because all members hold the same keys. A member counts what a
// compaction has released as in use until it writes again, which the alarm prevents: only a defragmentation shows what
// is really in use.
func liveData(members []Member) int64 {
	live := members[0].Database.InUse
	for _, m := range members {
		live = min(live, m.Database.InUse)
	}
	return live
}

// claimPermit claims a permit to free space, unless another agent may be freeing space.
func claimPermit(v View) (Decision, bool) {
	if text := permitAwaited(v); text != "" || !v.HostsFresh || v.Health.Hangs {
		return Decision{}, false
	}
	return do(Step{Kind: StepClaimPermit, Why: v.Cluster.Alarms}), true
}

// permitAwaited returns why this agent may not claim a permit to free space now; empty if it may.
func permitAwaited(v View) string {
	switch left := PermitTaken - v.Space.PermitsFor; {
	case v.Lock.Held:
		return "only the holder of the lock may free space: " + v.holderName()
	case v.Space.Permits == 0:
		return fmt.Sprintf("no permit is left: %d agents have tried, or space.noSpace was set after the alarm; free "+
			"space by hand", MaxPermits)
	case v.Space.Permits < MaxPermits && left > 0:
		return "another agent has claimed the permit to free space; the next one may try in " +
			durationfmt.Seconds(left)
	}
	return ""
}

// databases returns the members with their databases, or why it is unknown whether all of them have space. A voter that
// does not answer has no say: if it is over its quota when it returns, it raises the alarm again.
func databases(v View) (members []Member, unknown string) {
	for _, m := range v.Cluster.Members {
		switch {
		case !m.Live:
			continue
		case m.Database.Quota <= 0:
			return nil, "the quota of member " + m.label() + " is unknown, because a member's status contains it " +
				"only since etcd 3.6: free space by hand"
		}
		members = append(members, m)
	}
	return members, ""
}

// compact removes old revisions, because the live data of a member is too large for a defragmentation to help.
func compact(v View, m Member, inUse int64) Decision {
	live := fmt.Sprintf("%s in use, and the quota of member %s is %s", MiB(inUse), m.label(), MiB(m.Database.Quota))
	switch {
	case v.Space.Compacted < compactSettle:
		return wait(FreeingSpace, "the members remove compacted revisions: %s", live)
	case v.Space.Kept > 0 && v.Space.Kept >= v.Space.Keep:
		return wait(EtcdNoSpace, "%s, and a compaction has not changed that: delete keys, or raise "+
			"--quota-backend-bytes", live)
	case v.Space.Keep == 0:
		return wait(FreeingSpace, "a compaction keeps the revisions of the last space.retain, and this agent has "+
			"not been running for that long: %s", live)
	}
	return do(Step{Kind: StepCompact, Revision: v.Space.Keep, Why: live})
}

// defragmentOnline defragments the next database. The leader comes last, and transfers its leadership first, because a
// leader answers no renewal of a lease during a defragmentation.
func defragmentOnline(v View, over []Member) Decision {
	next := over[0]
	if i := slices.IndexFunc(over, func(m Member) bool { return !m.Leader }); i >= 0 {
		next = over[i]
	}
	if next.Leader {
		for m := range v.Cluster.voters() {
			if m.Leader || !m.Live || m.Database.Over() || v.againstLeader(m) != nil ||
				v.Failed.Kind == StepLeadElsewhere {
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
		s.Permits >= MaxPermits || s.RoomyFor < permitSettle || v.Failed.Kind == StepWritePermits || v.Pause != nil {
		return Decision{}, false
	}
	return do(Step{Kind: StepWritePermits, Why: "so that one agent can free space after a NOSPACE alarm"}), true
}

// mayDefragment returns a member that may be defragmenting its database, for an agent that has died or lost the lock:
// such a member answers no reads. PermitTaken is longer than a defragmentation may take.
func (v View) mayDefragment() (Member, bool) {
	i := slices.IndexFunc(v.Cluster.Members, func(m Member) bool { return !m.Live && m.DownFor < PermitTaken })
	if i < 0 {
		return Member{}, false
	}
	return v.Cluster.Members[i], true
}

// holderName returns the name of the host that holds the lock.
func (v View) holderName() string {
	for _, h := range v.Hosts {
		if h.ID == v.Lock.Holder {
			return h.Name
		}
	}
	return v.Lock.Holder
}

// fullDatabase blocks all later concerns while the NOSPACE alarm is raised. This host's request is an earlier concern,
// because a larger quota needs a restart of etcd.
func fullDatabase(v View) (Decision, bool) {
	d, holds := awaitDisarm(v, vetoNoSpace)
	if holds && v.Space.Remediate && v.Self.Mode == Manage && v.Pause == nil {
		if text := permitAwaited(v); text != "" {
			d.Reasons = append(d.Reasons, Reason{EtcdNoSpace, text})
		}
	}
	return d, holds
}

func spaceReasons() []ReasonInfo {
	return []ReasonInfo{{FreeingSpace, "this host frees space, so that etcd accepts writes again", ""}}
}
