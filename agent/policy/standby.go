// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/health"
)

// A lost standby is removed, and another host replaces it. By default, etcd allows one learner at a time, so a lost
// standby would block every join and replacement by a spare. Removing a learner does not affect the quorum, but the
// next host needs a copy of the database, so the removal waits until a spare is ready.

// standbysDiffer reports whether hosts are configured with different numbers of standbys. Each host decides for itself
// whether it becomes the standby, so only a host with 1 does, and no host waits for a host with 0 to become it.
func standbysDiffer(v View) (string, bool) {
	var with, without []string
	for _, h := range v.Hosts {
		if h.NoStandbys {
			without = append(without, h.Name)
		} else {
			with = append(with, h.Name)
		}
	}
	if len(with) == 0 || len(without) == 0 || v.foreign() || v.Resting && !v.HostsFresh {
		return "", false
	}
	return fmt.Sprintf("cluster.standbys is 0 on %s, but 1 on %s: only a host where it is 1 becomes the standby",
		firstNames(without), firstNames(with)), true
}

// firstNames returns at most mostNamed names of a list as text, with the number of the others.
func firstNames(names []string) string {
	if more := len(names) - mostNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), more)
	}
	return joinNames(names)
}

// removeLostStandby begins the removal of a lost standby. Only a voter's host does.
func removeLostStandby(v View) (Decision, bool) {
	return removeLostLearner(v, StandbyLost, func(m Member) (since time.Duration, why, lockWhy string) {
		if v.standbyRemovalHeld() != "" {
			return 0, "", ""
		}
		since, why = v.lostForNow(m)
		return since, why, "to remove the standby " + m.label() + ": " + why
	})
}

// lostFor returns for how long a standby has been lost according to the last observations, and why. It is lost in three
// cases:
//
//   - Its host has no agent, or the agent reports that the standby can never come back, and no live voter's host
//     reaches the standby (the same conditions as for a dead voter).
//   - It reports that it is unhealthy. An unhealthy standby cannot replace a voter, and prevents spares from doing so.
//     While a voter that may come back is down, such a standby stays.
//   - It answers, is behind the leader, and makes no progress.
//
// If a standby's etcd is down, that alone does not make it lost while its agent is present: the etcd was stopped on
// purpose or is about to be started.
func (v View) lostFor(m Member) (since time.Duration, why string) {
	if !m.Learner || m.Permanent || m.Name == "" {
		return 0, ""
	}
	gone, _ := v.reportedDead(m)
	stalled := min(m.StalledFor, m.BehindFor) // BehindFor excludes times without an answer
	h, present := v.hostOf(m)
	switch {
	case gone > 0:
		return gone, fmt.Sprintf("no quorumd on its host is in charge of it, and no voter's host has reached it for %s",
			durationfmt.Seconds(gone))
	case present && !h.Manage: // operators manage the standby
		return 0, ""
	case Unhealthy(h.Health) && h.UnhealthySince.For > 0 && blocks(h.Health, h.Ungated, health.Joins) &&
		(mayChange(v.Cluster.Counts()) || v.awaitsRepair()):
		return h.UnhealthySince.For, fmt.Sprintf("it has been %s for %s by its own report, and could not replace a "+
			"voter",
			h.Health, durationfmt.Seconds(h.UnhealthySince.For))
	case m.Live && m.LagKnown && !steady(v, m) && stalled > 0:
		return stalled, fmt.Sprintf("it is %d entries behind the leader, and has made no progress for %s", m.Lag,
			durationfmt.Seconds(stalled))
	}
	return 0, ""
}

// lostForNow is lostFor for decisions: it ignores observations of earlier rounds.
func (v View) lostForNow(m Member) (since time.Duration, why string) {
	if !v.Cluster.Reachable || !v.Cluster.Fresh || v.Resting && !v.HostsFresh {
		return 0, ""
	}
	return v.lostFor(m)
}

// isStandbyRemovable reports whether a standby has been lost for so long that it may be removed.
func (v View) isStandbyRemovable(m Member) bool {
	since, _ := v.lostForNow(m)
	return since >= v.Limits.LearnerStall
}

// unconfirmedLoss returns for how long a standby has been silent, the evidence, and why the standby does not count as
// lost yet: not all required hosts report it.
func (v View) unconfirmedLoss(m Member) (since time.Duration, why, held string) {
	if _, held = v.reportedDead(m); held == "" || m.Live || m.Name == "" || m.Permanent {
		return 0, "", ""
	}
	since = min(m.AgentGoneFor, m.DownFor)
	return since, fmt.Sprintf("no quorumd on its host is in charge of it, and %s has had no answer from it for %s",
		v.Self.Name, durationfmt.Seconds(since)), held
}

// whyStandbyStays returns why the removal of a standby is cancelled.
func (v View) whyStandbyStays(m Member) string {
	_, why := v.reportedDead(m)
	switch {
	case m.Permanent:
		return "the learner " + m.label() + " is not removed: it is permanent"
	case why == "":
		why = "it has not been out of reach for long enough"
	}
	return "the standby " + m.label() + " is not removed: " + why
}

// standbyRemovalHeld returns why no lost standby is removed now; empty if one may be.
func (v View) standbyRemovalHeld() string {
	if text, several := severalDown(v); several {
		return text
	}
	if text, several := commonCause(v); several {
		return text
	}
	if len(candidates(v, RoleStandby, false)) == 0 {
		return "no spare is ready to replace it"
	}
	return ""
}

// standbyLost reports whether a standby is lost, and what happens to it.
func standbyLost(v View) (string, bool) {
	for m := range v.Cluster.learners() {
		since, why := v.lostFor(m)
		held := ""
		if since == 0 {
			since, why, held = v.unconfirmedLoss(m)
		}
		if last, isLast := lastOfUpgrade(v, m, Version{}); isLast && held == "" {
			held = last
		}
		if v.Op != nil || !v.Cluster.Reachable || v.foreign() || since < v.Limits.LearnerStall/2 {
			continue
		}
		text := fmt.Sprintf("%s, the standby: %s", m.label(), why)
		switch left := v.Limits.LearnerStall - since; {
		case held != "":
			return text + "; it is not removed, because " + held, true
		case v.standbyRemovalHeld() != "":
			return fmt.Sprintf("%s; it would be removed after %s, but %s", text,
				durationfmt.Text(v.Limits.LearnerStall), v.standbyRemovalHeld()), true
		case left > 0:
			return fmt.Sprintf("%s; it will be removed in %s, and another host will replace it", text,
				durationfmt.Seconds(left)), true
		}
		return text + "; it is about to be removed, and another host will replace it", true
	}
	return "", false
}
