// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// An unhealthy voter that answers still counts towards the quorum, so its replacement becomes a voter before the
// unhealthy one is removed. A voter that answers no linearizable read because its disk hangs is removed first, like a
// dead one.

// outgoing is a voter that another host may replace now.
type outgoing struct {
	Member
	over    time.Duration // for how long another host has been allowed to replace it
	is, why string        // the voter's state as text, without and with the evidence
}

// outgoing returns the first voter that this host may replace now: dead voters first, then unhealthy ones, both in the
// order of their member IDs. On a host that is already a voter, it returns the voter to be removed without a
// replacement, if there is a surplus voter.
func (v View) outgoing() (outgoing, bool) {
	role := roleOf(v)
	if m, found := v.dead(); found && (role != RoleVoter || v.hasSurplus() && m.PeerURL != v.Self.PeerURL) {
		since, _ := v.deadFor(m)
		return outgoing{m, since - v.Limits.DeadGrace, "dead", "dead for " + durationfmt.Seconds(since)}, true
	}
	voters, _ := v.Cluster.Counts()
	if role == RoleVoter && !v.hasSurplus() || role != RoleVoter && !mayJoinAsExtra(voters, v.Target.Voters) {
		return outgoing{}, false
	}
	for m := range v.Cluster.voters() {
		if h, present := v.hostOf(m); present && m.PeerURL != v.Self.PeerURL && v.isUnhealthy(m) {
			s, _ := v.unhealthyFor(m)
			why := fmt.Sprintf("%s for %s, and %s", s.State, durationfmt.Seconds(s.For), s.Evidence)
			return outgoing{m, -v.graceLeft(m, h), "unhealthy", why}, true
		}
	}
	return outgoing{}, false
}

// leaving returns 1 while the voter that this host is replacing is still in the member list, and 0 otherwise.
func (v View) leaving() int {
	if !v.owns(KindReplace) {
		return 0
	}
	if m, there := v.memberByID(v.Op.Replaces); !there || m.Learner {
		return 0
	}
	return 1
}

// joinsFirst reports whether this host joins before the voter it replaces is removed: the voter still counts towards
// the quorum, and is unhealthy. After this host has been added, it is enough that the voter is neither dead nor known
// to have recovered. A voter that this host cannot reach may still serve others, so it counts towards the quorum unless
// its disk hangs and it has not answered for as long as evidence requires.
func (v View) joinsFirst(who Member) bool {
	begun := v.Op.Phase == PhaseBegun || v.Op.Phase == PhaseRemoving
	counts := !v.silent(who) || who.DownFor < v.silenceNeeded(who)
	return counts && (v.isUnhealthy(who) || !begun && v.recovered(who) == "" && !v.isDead(who))
}
