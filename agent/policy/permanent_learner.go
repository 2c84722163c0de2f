// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// A permanent learner is the learner of a host with host.role: learner. It never votes and is not a standby, so it
// counts neither towards the target nor as a replacement, and a dead one is not removed. It uses up one of the learners
// that --max-learners allows. Each member checks that limit when it applies the addition of a learner, so members with
// different limits would disagree about the member list. Therefore no learner is added next to a permanent one unless
// the limit is known to be the same and large enough on every member.

// passing returns the learners that are not permanent: they are joining, are standbys, or have never started.
func (c Cluster) passing() iter.Seq[Member] {
	return func(yield func(Member) bool) {
		for m := range c.learners() {
			if !m.Permanent && !yield(m) {
				return
			}
		}
	}
}

// learnerLast reports whether this host, configured as a permanent learner, waits for voters and standbys: voters and
// standbys join first, and a dead or unhealthy voter is replaced first. For such a replacement, giveUp rolls back a
// join whose learner has not started yet.
func learnerLast(v View) (string, bool) {
	if target, place := joinTarget(v); !place || target != RoleLearner {
		return "", false
	}
	voters, _ := v.Cluster.Counts()
	who, repairDue := v.outgoing()
	switch standbys := candidates(v, RoleStandby, false); {
	case repairDue:
		return "a permanent learner joins only after " + who.label() + ", which is " + who.is +
			", has been replaced", true
	case voters-v.retiring() < v.Target.Voters:
		return fmt.Sprintf("a permanent learner joins once all voters have joined: %d of %d", voters-v.retiring(),
			v.Target.Voters), true
	case v.Resting && !v.HostsFresh:
		return "other hosts go first", true
	case v.Cluster.learning() < v.Target.Standbys && len(standbys) > 0:
		return "a permanent learner joins after the standby, and " + standbys[0].Name +
			" is ready to become the standby", true
	}
	return "", false
}

// learnerVersion reports whether this host, configured as a permanent learner, cannot join because its own or a
// member's etcd allows only one learner.
func learnerVersion(v View) (string, bool) {
	if !v.Self.Learner || v.isListed() {
		return "", false
	}
	if e := v.Self.Etcd; e.Known() && !e.limitsLearners() {
		return fmt.Sprintf("this host's etcd is %s", e), true
	}
	for _, m := range v.Cluster.Members {
		if m.Version.Known() && !m.Version.limitsLearners() {
			return fmt.Sprintf("%s runs etcd %s", m.label(), m.Version), true
		}
	}
	return "", false
}

// limitsLearners reports whether etcd has the flag --max-learners.
func (v Version) limitsLearners() bool { return v.Major > 3 || v.Major == 3 && v.Minor >= 6 }

// learnerLimit reports whether etcd might refuse this host's learner, because of --max-learners. Next to permanent
// learners, one place stays free for a standby or a join. A permanent learner also joins next to several standbys; any
// other host waits until there is no standby. The limit of a member is the one with which its process runs; the limit
// of this host is the configured one.
func learnerLimit(v View) (string, bool) {
	permanent, standbys := 0, 0
	for m := range v.Cluster.learners() {
		switch {
		case m.PeerURL == v.Self.PeerURL:
		case m.Permanent:
			permanent++
		case m.Standby:
			standbys++
		}
	}
	if v.Self.Learner {
		permanent++
	} else {
		standbys = 0
	}
	if permanent == 0 || v.isListed() || !v.Cluster.Reachable {
		return "", false
	}
	need, own := permanent+max(1, standbys), v.Self.MaxLearners
	var unknown, differ []string
	for _, m := range v.Cluster.Members {
		if v.leavesFirst(m) {
			continue
		}
		switch limit := m.learnerLimit(); limit {
		case 0:
			unknown = append(unknown, m.label())
		case own:
		default:
			differ = append(differ, fmt.Sprintf("%d on %s", limit, m.label()))
		}
	}
	var why string
	switch {
	case own < need:
		why = fmt.Sprintf("this host is configured with %d", own)
	case len(differ) > 0:
		why = fmt.Sprintf("it is %d on this host, but %s", own,
			strings.Join(differ[:min(len(differ), mostNamed)], ", "))
	case len(unknown) > 0:
		why = "it is unknown for the running etcd on " + strings.Join(unknown[:min(len(unknown), mostNamed)], ", ")
	default:
		return "", false
	}
	return fmt.Sprintf("--max-learners must be at least %d, and the same on every member: %s", need, why), true
}

// learnerLimit returns the number of learners to which a member limits the cluster; 0 if unknown.
func (m Member) learnerLimit() int {
	if m.Version.Known() && !m.Version.limitsLearners() {
		return 1
	}
	return m.MaxLearners
}

// learnerPlacesTaken reports whether permanent learners are known to leave no place for another learner. It also
// reports members with different limits, if there are permanent learners. That happens if a standby becomes a permanent
// learner, or if a limit is lowered. In that case no host can join, which operators would otherwise notice only when a
// voter dies.
func learnerPlacesTaken(v View) (string, bool) {
	var permanent, small []string
	limits := map[int]bool{}
	for m := range v.Cluster.learners() {
		if m.Permanent {
			permanent = append(permanent, m.label())
		}
	}
	need := len(permanent) + 1
	for _, m := range v.Cluster.Members {
		limit := m.learnerLimit()
		if limit == 0 {
			continue
		}
		if limits[limit] = true; limit < need {
			small = append(small, fmt.Sprintf("%d on %s", limit, m.label()))
		}
	}
	if need == 1 || !v.Cluster.Reachable || v.foreign() || v.Resting && !v.HostsFresh {
		return "", false
	}
	var why string
	switch {
	case len(small) > 0:
		why = strings.Join(small[:min(len(small), mostNamed)], ", ")
	case len(limits) > 1:
		why = fmt.Sprintf("the members' values differ, from %d to %d", slices.Min(slices.Collect(maps.Keys(limits))),
			slices.Max(slices.Collect(maps.Keys(limits))))
	default:
		return "", false
	}
	return fmt.Sprintf("no spare can join or replace a voter: to leave room for one more learner than the permanent "+
		"ones (%s), --max-learners must be at least %d, and the same on every member: %s",
		firstNames(permanent), need, why), true
}

// learnersExceedLimit reports whether more learners are listed than this host's configuration allows: etcd would not
// start with that limit. quorumd applies the configured limit only in a readdress, so until then it only reports this.
func learnersExceedLimit(v View) (string, bool) {
	listed := 0
	for range v.Cluster.learners() {
		listed++
	}
	_, member := v.member()
	limit := v.Self.MaxLearners // 0 is unknown
	if !member || !v.Self.Drives || limit == 0 || listed <= limit || !v.Cluster.Reachable || v.foreign() {
		return "", false
	}
	return fmt.Sprintf("%d learners are listed, but this host is configured with --max-learners %d: etcd does not "+
		"start with a limit below %d → set ETCD_MAX_LEARNERS in etcd.environment, and reload quorumd", listed, limit,
		listed), true
}

// restartLowersLimit keeps etcd from being stopped if it would not start again, because more learners are listed than
// its next start would allow. A readdress writes the configured limit; after any other work, etcd starts with the
// environment file as it is. On a machine that goes down anyway, restartLowersLimit does not apply.
func restartLowersLimit(v View) (string, bool) {
	if v.Asked == nil || v.Asked.Hurried {
		return "", false
	}
	if v.Asked.Work == WorkReaddress {
		return learnersExceedLimit(v)
	}
	_, member := v.member()
	listed, next := 0, v.Self.NextLearners
	for range v.Cluster.learners() {
		listed++
	}
	if !member || !v.Self.Drives || v.Asked.KeepRunning || v.Unit.State != UnitActive || next == 0 || listed <= next ||
		!v.Cluster.Reachable || v.foreign() {
		return "", false
	}
	return fmt.Sprintf("%d learners are listed, but %s limits the next start of etcd to --max-learners %d: etcd would "+
		"not start again → set it there to the value of the other members, at least %d",
		listed, v.Self.NextLearnersFrom, next, listed), true
}

// leavesFirst reports whether a voter is dead, so that it is removed before its replacement is added as a learner. It
// is false while several voters are down, because the others are still members when the learner is added.
func (v View) leavesFirst(m Member) bool {
	voters, live := v.Cluster.Counts()
	since, _ := v.reportedDead(m)
	return !m.Learner && !m.Live && live == voters-1 && since > 0
}

// isListed reports whether the member list includes this host.
func (v View) isListed() bool {
	_, listed := v.member()
	return listed
}

// learnerVotes reports whether this host is configured as a permanent learner, but its member is a voter.
func learnerVotes(v View) (string, bool) {
	m, listed := v.member()
	return "host.role is learner, but member " + m.label() + " is a voter and stays one",
		v.Self.Learner && v.Cluster.Reachable && listed && !m.Learner
}
