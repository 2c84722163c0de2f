// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// A downgrade is a rollout to the preceding minor version of etcd after the cluster version has been raised. An etcd of
// that version starts only once etcd's own downgrade job has lowered the cluster version and the storage version of
// every member's database. So the host that goes down first enables the job, and each host waits for all storage
// versions before its etcd is stopped. etcd ends the job a few seconds after the last member runs the older version.
// While the job is enabled, etcd lets no new member start. If an operator aborts the rollout, an agent cancels the job.
// As long as a member runs the older version, the cluster version stays lowered even without the job.

// DowngradeJob is etcd's downgrade job, as the members report it.
type DowngradeJob struct {
	Enabled bool
	Target  Version // the minor version to which the job lowers the cluster version; unknown if it cannot be parsed
	// For is how long this agent has observed, without interruption, that a job is enabled, or that none is.
	For time.Duration
}

// lowersWithin is how long etcd takes, at most, to lower the cluster version after the job was enabled, if every member
// answers: etcd's leader compares the members' versions every four seconds (etcd 3.6 and 3.7). A member's status does
// not contain the cluster version.
const lowersWithin = 15 * time.Second

// callsEnd is the time after which no call of an agent that has died can enable the job any more.
const callsEnd = time.Minute

// lowers reports whether the job lowers the cluster version to that minor version.
func (j DowngradeJob) lowers(to Version) bool {
	return j.Enabled && j.Target.Known() && j.Target.minor() == to.minor()
}

// after returns the next minor version.
func (v Version) after() Version { return Version{Major: v.Major, Minor: v.Minor + 1} }

// AgainstDowngrade returns why etcd may not be downgraded to this version, or nil. A downgrade starts only if every
// member answers, is healthy and has an agent that will take it down: otherwise the job could not end, and no host
// could join.
func AgainstDowngrade(v View, version string) *Refusal {
	to := ParseVersion(version)
	switch {
	case !to.Known():
		return &Refusal{Wrong, "", version + " is not a version", "name a patch version, such as 3.6.16"}
	case to.minor().Less(Version{Major: 3, Minor: 5}): // etcd 3.6 introduced the job
		return conflicts(VersionIncompatible, "etcd cannot be downgraded to "+to.minorText(),
			"3.5 is the oldest version to downgrade to")
	case !v.Limits.AllowUnsafe && !to.Safe():
		return conflicts(VersionUnsafe, "etcd "+to.String()+" has known faults in membership changes",
			"choose the newest patch of "+to.minorText())
	case v.Op != nil:
		return conflicts("", "an operation of "+v.Op.HostName+" is in flight",
			"wait until it has ended: quorumctl operation show")
	case v.Cluster.Job.Enabled && !v.Cluster.Job.lowers(to):
		return conflicts("", "etcd's downgrade job to "+v.Cluster.Job.Target.String()+" is enabled",
			"etcdctl downgrade cancel ends it")
	}
	for _, m := range v.Cluster.Members {
		switch is := m.Version.minor(); {
		case !m.answers() || is == to.minor():
		case is != to.minor().after():
			return conflicts(VersionIncompatible, fmt.Sprintf("%s runs etcd %s, and etcd is downgraded one minor "+
				"version at a time", m.label(), m.Version), "downgrade to "+is.before().minorText()+" first")
		}
		if h, present := v.hostOf(m); !present || !h.Manage {
			return conflicts("", "quorumd does not run in mode manage on the host of "+m.label()+
				", so the downgrade could not be completed", "set mode: manage there, and start quorumd")
		}
	}
	if refusal := againstUnready(v, "downgrade"); refusal != nil {
		return refusal
	}
	if voters, live := v.Cluster.Counts(); !mayStop(voters, live-1) {
		return conflicts(QuorumAtRisk, spareText(voters)+", so no host would be taken down",
			"quorumctl cluster resize changes the number of voters: it must be odd, and at least 3")
	}
	if len(v.newerThan(to)) == 0 {
		return conflicts("", "no member runs a newer minor version than "+to.minorText(),
			"to change only the patch version: quorumctl upgrade start")
	}
	return nil
}

// newerThan returns the members that run a newer minor version or an unknown one.
func (v View) newerThan(to Version) (newer []Member) {
	for _, m := range v.Cluster.Members {
		if !m.Version.Known() || to.minor().Less(m.Version.minor()) {
			newer = append(newer, m)
		}
	}
	return newer
}

// downgradeVetoes returns the vetoes against enabling or cancelling etcd's downgrade job.
func downgradeVetoes() []veto {
	return []veto{vetoHostConflict(), vetoOperationRecorded(), vetoOperationInFlight(), vetoLockHeld()}
}

// downgradeJob enables etcd's downgrade job before the first host of a downgrade goes down, and cancels it after the
// downgrade was aborted. It cancels no job that quorumd has not enabled. A call to enable the job may take effect late.
// Therefore the rollout's record marks the job as quorumd's until no job has been enabled for callsEnd. One more
// cancellation then clears the mark. After a call that etcd has refused, the lock is released before the next one.
func downgradeJob(v View) (Decision, bool) {
	r := v.Rollout
	if r == nil || !r.Downgrade || !v.Cluster.Reachable || v.foreign() || len(against(v, downgradeVetoes())) > 0 {
		return Decision{}, false
	}
	to := ParseVersion(r.Upgrade)
	step, off := Step{Why: "to etcd " + to.minorText()}, min(r.UnchangedFor, v.Cluster.Job.For)
	switch {
	case len(v.newerThan(to)) == 0: // etcd ends the job
		return Decision{}, false
	case r.Over && r.Job && (v.Cluster.Job.lowers(to) || !v.Cluster.Job.Enabled && off >= callsEnd):
		step.Kind = StepCancelDowngrade
	case r.Runs && !v.lowered(to) && !v.Cluster.Job.Enabled && v.Asked != nil && v.Asked.Rollout == r.ID &&
		againstEnabling(v) == "":
		step.Kind, step.Version = StepEnableDowngrade, to.minorText()
	default:
		return Decision{}, false
	}
	switch {
	case v.Lock.Mine && v.Failed.Kind == step.Kind:
		return wait(StepFailed, "%s", v.Failed.Text), true
	case !v.Lock.Mine:
		return do(Step{Kind: StepTakeLock, Why: "for etcd's downgrade job " + step.Why}), true
	}
	return do(step), true
}

// lowered reports whether the cluster version is that minor version, or is being lowered to it.
func (v View) lowered(to Version) bool {
	return v.Cluster.Job.lowers(to) || slices.ContainsFunc(v.Cluster.Members, func(m Member) bool {
		return m.answers() && m.Version.minor() == to.minor()
	})
}

// againstEnabling returns why the downgrade job is not enabled yet; empty if it may be. It requires that every member
// answers and is healthy, that no known storage version differs from the version of its member's etcd, that no learner
// is joining, and that this host could be taken down.
func againstEnabling(v View) string {
	if r := againstUnready(v, "downgrade"); r != nil {
		return r.Text
	}
	for m := range v.Cluster.passing() {
		if !m.Standby {
			return m.label() + " is a learner that is still joining"
		}
	}
	for _, m := range v.Cluster.Members {
		if m.Storage.Known() && m.Storage.minor() != m.Version.minor() { // etcd has not undone a cancelled job yet
			return "the storage version of " + m.label() + " is " + m.Storage.minorText() + ", but its etcd is " +
				m.Version.String()
		}
	}
	for _, veto := range cycleVetoes() {
		if veto.code == DowngradeAwaited { // downgradeAwaited calls this function
			continue
		}
		if r, holds := veto.reason(v); holds {
			return r.Text
		}
	}
	return ""
}

// downgradeAwaited returns why this host's member is not taken down for a downgrade yet: the older etcd would not
// start.
func downgradeAwaited(v View) (string, bool) {
	r := v.Rollout
	if r == nil || !r.Downgrade || v.Asked == nil || v.Asked.Rollout != r.ID || v.foreign() {
		return "", false
	}
	to := ParseVersion(r.Upgrade)
	own, listed := v.member()
	if !listed || own.Version.Known() && !to.minor().Less(own.Version.minor()) {
		return "", false
	}
	if !v.lowered(to) {
		text := "etcd's downgrade to " + to.minorText() + " is not enabled yet"
		if why := againstEnabling(v); why != "" {
			text += ": " + why
		}
		return text, true
	}
	if left := v.loweredIn(to); left > 0 {
		return fmt.Sprintf("etcd is lowering the cluster version to %s: this takes up to %s if every member answers",
			to.minorText(), durationfmt.Seconds(left)), true
	}
	newer := v.newerThan(to)
	i := slices.IndexFunc(newer, func(m Member) bool { return m.Storage.minor() != to.minor() })
	if i < 0 {
		return "", false
	}
	return fmt.Sprintf("etcd %s starts only when the storage version of every member is %s, but that of %s is %s",
		to.minorText(), to.minorText(), newer[i].label(), newer[i].Storage.minorText()), true
}

// loweredIn returns how long it may take until the cluster version is lowered; 0 if a member already runs the older
// version.
func (v View) loweredIn(to Version) time.Duration {
	since := v.Cluster.Job.For
	for _, m := range v.Cluster.Members {
		if m.answers() && m.Version.minor() == to.minor() {
			return 0
		}
		since = min(since, m.LiveFor)
	}
	return max(0, lowersWithin-since)
}

// joinsShut reports whether etcd's downgrade job keeps every new member from starting. Members of etcd 3.5 do not
// report the job, so a job that quorumd has enabled counts as enabled until every member is known to be downgraded.
func joinsShut(v View) (string, bool) {
	target, r := v.Cluster.Job.Target, v.Rollout
	if !v.Cluster.Job.Enabled {
		if r == nil || !r.Downgrade || !r.Job || r.Over || len(v.newerThan(ParseVersion(r.Upgrade))) == 0 {
			return "", false
		}
		target = ParseVersion(r.Upgrade)
	}
	return "etcd's downgrade to " + target.minorText() + " is enabled, and no new member can start until it has ended",
		true
}

// downgradeEnabled reports whether etcd's downgrade job keeps this host from becoming a member.
func downgradeEnabled(v View) (string, bool) {
	if _, listed := v.member(); listed {
		return "", false
	}
	return joinsShut(v)
}

// downgradeLeft reports whether etcd's downgrade job is enabled although no downgrade runs.
func downgradeLeft(v View) (string, bool) {
	if r := v.Rollout; r != nil && r.Downgrade && r.Runs && v.Cluster.Job.lowers(ParseVersion(r.Upgrade)) {
		return "", false
	}
	text, shut := joinsShut(v)
	return text + "; no downgrade runs", shut && v.Cluster.Job.Enabled && !v.foreign()
}

// AgainstJobLeft returns why a rollout may not start while the last rollout's record notes that quorumd has enabled
// etcd's downgrade job, or nil. keeps reports that the new rollout is a downgrade to the same minor version: it
// continues with that job.
func AgainstJobLeft(v View, last Rollout, version string, downgrade bool) (refusal *Refusal, keeps bool) {
	from, to := ParseVersion(last.Upgrade), ParseVersion(version)
	switch {
	case !last.Job || len(v.newerThan(from)) == 0 && !v.Cluster.Job.Enabled:
		return nil, false
	case downgrade && to.Known() && from.minor() == to.minor():
		return nil, true
	case last.Over:
		return &Refusal{
			NotNow, DowngradeEnabled, "etcd's downgrade job of the last rollout is being cancelled",
			"try again in a minute",
		}, false
	}
	return conflicts(DowngradeEnabled, "the last rollout has enabled etcd's downgrade job",
		"quorumctl upgrade abort cancels it"), false
}

// DowngradePlan returns the steps of a downgrade if nothing fails: see UpgradePlan.
func DowngradePlan(v View, hosts []RolloutHost, version string) (steps []PlanStep) {
	to := ParseVersion(version)
	job := v.Cluster.Job.Enabled
	if !v.lowered(to) {
		job = true
		steps = append(steps, v.planStep("etcd's downgrade job to "+to.minorText()+" is enabled; until it has ended, "+
			"no host can join"))
	}
	steps = append(steps, v.planStep("quorumd waits until the storage version of every member is "+to.minorText()))
	nothing := func(View, Version, func(PlanChange, string)) {}
	steps = append(steps, versionSteps(v, hosts, to, nothing, nothing)...)
	if job {
		steps = append(steps, v.planStep("etcd ends the downgrade job within seconds, and hosts can join again"))
	}
	return steps
}
