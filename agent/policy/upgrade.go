// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// An upgrade is a rollout to a different version of etcd. etcd upgrades one minor version at a time, and raises the
// cluster version a few seconds after the last member runs the new minor version. From then on no member can run the
// old one again, so the rollout pauses before that member's host, and an operator decides. Until then every member can
// be rolled back.

// NextEtcd describes etcd.nextBinary, the etcd for a host's next upgrade, as that host has observed it. The zero value
// means that nothing is known.
type NextEtcd struct {
	Version string // the version that the binary reports
	// Problem is why the binary cannot replace the running etcd, worded to follow the binary's name; empty if it can,
	// as far as is known. A remedy may follow, after an arrow.
	Problem string
}

// againstNext returns why a host is not prepared for a version, or nil. A host without etcd.nextBinary is not checked,
// nor is a rollout that stays within a minor version. A rollback is checked only if etcd.nextBinary has the requested
// version, because a rollback may repair the host.
func againstNext(h RolloutHost, version string) *Refusal {
	const fix = "correct it and run systemctl reload quorumd on that host; a flag of the running etcd counts " +
		"until etcd restarts without it"
	problem, remedy, _ := strings.Cut(h.Next.Problem, " → ")
	to, is := ParseVersion(version), ParseVersion(h.Etcd)
	switch {
	case h.Next == NextEtcd{} || is.minor() == to.minor() || to.Less(is) && h.Next.Version != version:
		return nil
	case h.Next.Version != version && h.Next.Version != "":
		return conflicts("", "etcd.nextBinary on "+h.Name+" is etcd "+h.Next.Version+", not "+version, fix)
	case problem != "":
		return conflicts("", "etcd.nextBinary on "+h.Name+" "+problem, cmp.Or(remedy, fix))
	}
	return nil
}

// AgainstUpgrade returns why etcd may not be rolled out in this version, or nil. A version that cannot be parsed is not
// checked. A rollout within a minor version, and one that goes back, may repair a cluster: only an upgrade requires
// every member to answer and to be healthy. No rollout of a program starts while a host is taken down, because that
// host's operation may install yet another version.
func AgainstUpgrade(v View, w Work, version string) *Refusal {
	to := ParseVersion(version)
	if op := v.Op; op != nil && op.info().down && w.RunsProgram() {
		return conflicts("", "an operation of "+op.HostName+" is in flight",
			"wait until it has ended: quorumctl operation show")
	}
	if !to.Known() {
		return nil
	}
	rises, back := v.raises(to), slices.ContainsFunc(v.Cluster.Members, func(m Member) bool {
		return to.minor().Less(m.Version.minor())
	})
	switch {
	case back && !rises: // allowed even if the version has known faults, because the members ran it before the upgrade
		return againstRollback(v, to)
	case !v.Limits.AllowUnsafe && !to.Tested():
		return conflicts(VersionUntested, fmt.Sprintf("quorumd is tested with etcd up to %s, not with %s",
			newestTested().minorText(), to), "upgrade quorumd first")
	case !v.Limits.AllowUnsafe && !to.Safe():
		return conflicts(VersionUnsafe, "etcd "+to.String()+" has known faults in membership changes",
			"choose the newest patch of "+to.minorText())
	case !rises:
		return nil
	case v.Cluster.Job.Enabled:
		return conflicts(DowngradeEnabled, "etcd's downgrade to "+v.Cluster.Job.Target.minorText()+" is enabled",
			"quorumctl upgrade abort cancels it if quorumd has enabled it; otherwise: etcdctl downgrade cancel")
	}
	for _, m := range v.Cluster.Members {
		if refusal := againstJump(m, to); refusal != nil {
			return refusal
		}
	}
	return againstUnready(v, "upgrade")
}

// againstUnready returns why the cluster is not ready for an upgrade or downgrade to a different minor version, or nil.
func againstUnready(v View, what string) *Refusal {
	wait := "quorumctl status; start the " + what + " when every member is healthy"
	for _, m := range v.Cluster.Members {
		h, present := v.hostOf(m)
		switch {
		case !m.answers():
			return conflicts("", m.label()+" does not answer, so the "+what+" could not be completed",
				"start its etcd, or quorumctl member remove "+m.label()+" --reason '<why>'")
		case m.Errors:
			return conflicts("", "etcd on "+m.label()+" reports errors", wait)
		case present && Unhealthy(h.Health):
			return conflicts("", fmt.Sprintf("the health state of %s is %s", h.Name, h.Health), wait)
		}
	}
	if v.Cluster.Alarms != "" {
		return conflicts("", "an alarm is active: "+v.Cluster.Alarms, wait)
	}
	return nil
}

// againstRollback returns why the members cannot be rolled back to an older minor version, or nil. etcd does not raise
// the cluster version while a member that answers runs the old minor version.
func againstRollback(v View, to Version) *Refusal {
	for _, m := range v.Cluster.Members {
		if m.answers() && !to.minor().Less(m.Version.minor()) {
			return nil
		}
	}
	for _, m := range v.Cluster.Members {
		if !m.answers() {
			return conflicts("", m.label()+" does not answer, so it is unknown whether the cluster version is still "+
				to.minorText(), "start its etcd, and try again")
		}
	}
	return conflicts(VersionIncompatible, "no member runs etcd "+to.minorText()+" any more, so the cluster version "+
		"has been raised, and etcd "+to.minorText()+" does not start",
		"quorumctl upgrade downgrade "+to.String()+" --command NAME --reason '<why>'")
}

// answers reports whether the member has answered with its version.
func (m Member) answers() bool { return m.Live && m.Version.Known() }

// raises reports whether a version belongs to a newer minor version than that of some member. Once all members run such
// a version, none can be rolled back.
func (v View) raises(to Version) bool {
	return to.Known() && slices.ContainsFunc(v.Cluster.Members, func(m Member) bool {
		return m.Version.Known() && m.Version.minor().Less(to.minor())
	})
}

// RaisesVersion reports whether a rollout to a version raises the cluster version when it reaches the last member, so
// that no member can be rolled back. Such a rollout pauses before the last member, unless an operator waives that.
func RaisesVersion(v View, version string) bool { return v.raises(ParseVersion(version)) }

// UpgradePlan returns the steps of a rollout to a version if nothing fails, host by host in the order of a rollout. The
// fault tolerance of a step is the one after it; while etcd of a voter is stopped, it is one less.
func UpgradePlan(v View, hosts []RolloutHost, version string, hold bool) (steps []PlanStep) {
	to := ParseVersion(version)
	raises := v.raises(to)
	before := func(v View, was Version, add func(PlanChange, string)) {
		if hold && raises && !v.raises(to) {
			add("", fmt.Sprintf("the rollout pauses; up to this point every host can be rolled back to etcd %s; "+
				"quorumctl upgrade resume continues it", was.minorText()))
		}
	}
	after := func(v View, _ Version, add func(PlanChange, string)) {
		if raises && !v.raises(to) {
			add("", "the cluster version becomes "+to.minorText()+" within seconds: no member can be rolled back")
			raises = false
		}
	}
	steps = versionSteps(v, hosts, to, before, after)
	if raises {
		steps = append(steps, v.planStep("the cluster version is not raised: other members still run an etcd older "+
			"than "+to.minorText()))
	}
	return steps
}

// NeedsNewLog reports whether an etcd of this version cannot read the entries that etcd 3.5 wrote to its log in the
// format of the v2 API. Such an etcd exits with "unmarshal should never fail" (measured with 3.7.3).
func NeedsNewLog(version string) bool {
	return !ParseVersion(version).Less(Version{Major: 3, Minor: 7})
}

// AgainstLog returns why such an etcd cannot replace the running one, given the index of the member's newest snapshot
// and of the newest later entry that it cannot read; empty if there is no such entry. The text follows the name of the
// binary, as [NextEtcd.Problem] does.
func AgainstLog(snapshot, old uint64) string {
	if old == 0 {
		return ""
	}
	newest := "this member has saved no snapshot yet"
	if snapshot != 0 {
		newest = fmt.Sprintf("the newest snapshot covers the log up to entry %d", snapshot)
	}
	return fmt.Sprintf("cannot read entry %d of etcd's log, which etcd 3.5 wrote, and %s"+
		" → wait for the next snapshot: etcd saves one every --snapshot-count entries, and quorumd looks again every "+
		"minute", old, newest)
}

// UpgradeWarnings returns what an operator must check before a rollout of these hosts to a version, because quorumd
// does not know it: whether etcd can read the log of a host without etcd.nextBinary.
func UpgradeWarnings(v View, chosen []RolloutHost, version string) []string {
	to, unchecked := ParseVersion(version), UncheckedHosts(chosen)
	if !v.raises(to) || !NeedsNewLog(version) || len(unchecked) == 0 {
		return nil
	}
	return []string{"if this cluster ran etcd 3.5 before, etcd " + to.minorText() + " exits on a member that has not " +
		"saved a snapshot since: on " + joinNames(unchecked) + ", wait until the newest file in member/snap is newer " +
		"than the end of the upgrade to 3.6, or set etcd.nextBinary, and quorumd checks it"}
}

// versionSteps returns the steps in which the members get a different version, host by host in the order of a rollout.
// before and after add the steps around those of a host. They receive the view in which the host's member already has
// the new version, and its previous version as was.
func versionSteps(v View, hosts []RolloutHost, to Version,
	before, after func(v View, was Version, add func(PlanChange, string)),
) []PlanStep {
	v.Cluster.Members = slices.Clone(v.Cluster.Members)
	return planned(v, hosts, func(h RolloutHost, add func(PlanChange, string)) {
		i := slices.IndexFunc(v.Cluster.Members, func(m Member) bool { return m.PeerURL == h.PeerURL })
		switch {
		case h.Skipped:
			return
		case i < 0:
			add("", h.Name+": the command runs; the host has no member")
			return
		}
		was := v.Cluster.Members[i].Version
		v.Cluster.Members[i].Version = to
		before(v, was, add)
		leaderMoves(v, h, add)
		add(PlanRestarts, fmt.Sprintf("%s: etcd %s stops, the command runs, and etcd starts as %s", h.Name, was, to))
		after(v, was, add)
	})
}

// RollbackVersion returns the version to which the upgraded members are rolled back: the oldest of those that the
// members report. It is unknown if any of the reported versions is.
func RollbackVersion(members []Version) (oldest Version) {
	for _, is := range members {
		if !is.Known() {
			return Version{}
		}
		if !oldest.Known() || is.Less(oldest) {
			oldest = is
		}
	}
	return oldest
}

// UncheckedHosts returns the names of the hosts on which it is unknown whether the new version accepts etcd's settings,
// because they have no etcd.nextBinary.
func UncheckedHosts(chosen []RolloutHost) (names []string) {
	for _, h := range chosen {
		if h.Member && !h.Skipped && h.Next == (NextEtcd{}) {
			names = append(names, h.Name)
		}
	}
	return names
}
