// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"iter"
	"strings"
)

// A permanent learner is the learner of a host with host.role: learner. It never votes and is not a standby, so it
// counts neither towards the target nor as a replacement, and it stays if it is lost. It takes one of the places that
// --max-learners leaves for learners. Each member compares that limit when it applies the change: members with
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

// learnerLast reports whether this host, which is to become a permanent learner, waits for voters and standbys.
func learnerLast(v View) (string, bool) {
	if target, place := joinTarget(v); !place || target != RoleLearner {
		return "", false
	}
	voters, _ := v.Cluster.Counts()
	switch standbys := candidates(v, RoleStandby, false); {
	case voters-v.retiring() < v.Target.Voters:
		return fmt.Sprintf("a permanent learner joins once all voters have joined: %d of %d", voters-v.retiring(),
			v.Target.Voters), true
	case v.Resting && !v.HostsFresh:
		return "other hosts go first", true
	case v.Cluster.learning() < v.Target.Standbys && len(standbys) > 0:
		return "a permanent learner joins after the standby, and " + standbys[0].Name + " is ready to become one", true
	}
	return "", false
}

// learnerVersion reports whether a member or this host, which is to become a permanent learner, runs an etcd that
// allows only one learner.
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

// learnerLimit reports whether this host's learner might be refused, because permanent learners take the places. One
// place stays free for a standby or a join. The limit of each member counts as the member's process has it, and this
// host's as it is configured.
func learnerLimit(v View) (string, bool) {
	permanent := 0
	for m := range v.Cluster.learners() {
		if m.Permanent && m.PeerURL != v.Self.PeerURL {
			permanent++
		}
	}
	if v.Self.Learner {
		permanent++
	}
	if permanent == 0 || v.isListed() || !v.Cluster.Reachable {
		return "", false
	}
	need, own := permanent+1, v.Self.MaxLearners
	var unknown, differ []string
	for _, m := range v.Cluster.Members {
		if v.leavesFirst(m) {
			continue
		}
		limit := m.MaxLearners
		if m.Version.Known() && !m.Version.limitsLearners() {
			limit = 1
		}
		switch limit {
		case 0:
			unknown = append(unknown, m.label())
		case own:
		default:
			differ = append(differ, fmt.Sprintf("%d on %s", limit, m.label()))
		}
	}
	switch {
	case own < need:
		return fmt.Sprintf("permanent learners: %d; with one place for others --max-learners must be at least %d, and "+
			"this host is configured with %d", permanent, need, own), true
	case len(differ) > 0:
		return fmt.Sprintf("--max-learners is %d on this host, but %s", own,
			strings.Join(differ[:min(len(differ), mostNamed)], ", ")), true
	case len(unknown) > 0:
		return "--max-learners is unknown for the running etcd on " +
			strings.Join(unknown[:min(len(unknown), mostNamed)], ", "), true
	}
	return "", false
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
