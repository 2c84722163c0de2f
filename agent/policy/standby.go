// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/health"
)

// The standby is kept: one that is lost is let go, and another host replaces it. etcd allows one learner at a time,
// so that one which nobody keeps up would hold back every join and every replacement for ever. A learner's removal
// costs no quorum; it costs the next host a copy of the database, so that it waits until one stands ready for that.

// letGo lets a voter's agent begin the removal of a standby that is lost.
func letGo(v View) (Decision, bool) {
	return dismiss(v, StandbyLost, func(m Member) (since time.Duration, why, errand string) {
		if v.strayHeld() != "" {
			return 0, "", ""
		}
		since, why = v.strayedNow(m)
		return since, why, "to remove the standby " + m.label() + ": " + why
	})
}

// strayed gives for how long a standby has been lost, by what was seen last, and by what: no agent is on its host and
// no live voter's host reaches it, as with a voter that is dead; or it answers, and says itself that it does not get
// on, or that it is sick: then it replaces nobody, and would keep a spare from replacing a voter that is dead; while a
// voter is down that may be back it stays. One whose agent is there and whose etcd is not was stopped in order, or is
// about to be started.
func (v View) strayed(m Member) (since time.Duration, why string) {
	if !m.Learner || m.Name == "" {
		return 0, ""
	}
	gone, _ := v.calledDead(m)
	stalled := min(m.StalledFor, m.BehindFor) // while it did not answer it was not asked to get on
	h, present := v.hostOf(m)
	switch {
	case gone > 0:
		return gone, fmt.Sprintf("no quorumd is known on its host, and no voter's host has reached it for %s",
			durationfmt.Seconds(gone))
	case present && !h.Manage: // whoever looks after it does so by hand
		return 0, ""
	case sick(h.Health) && h.Ails.For > 0 && gates(h.Health, h.Spares, health.Joins) &&
		(mayChange(v.Cluster.Counts()) || v.awaitsRepair()):
		return h.Ails.For, fmt.Sprintf("it has been %s for %s by its own report, and could not replace a voter",
			h.Health, durationfmt.Seconds(h.Ails.For))
	case m.Live && m.LagKnown && !steady(v, m) && stalled > 0:
		return stalled, fmt.Sprintf("it is %d entries behind the leader, and has made no progress for %s", m.Lag,
			durationfmt.Seconds(stalled))
	}
	return 0, ""
}

// strayedNow is strayed for deciding: what was not seen in this round proves nothing.
func (v View) strayedNow(m Member) (since time.Duration, why string) {
	if !v.Cluster.Reachable || !v.Cluster.Fresh || v.Resting && !v.Looked {
		return 0, ""
	}
	return v.strayed(m)
}

// isStray tells whether a standby has been lost for so long that it may be let go.
func (v View) isStray(m Member) bool {
	since, _ := v.strayedNow(m)
	return since >= v.Limits.LearnerStall
}

// doubted gives for how long a standby has been silent, and why it is not lost all the same: not all say so who must.
func (v View) doubted(m Member) (since time.Duration, why, held string) {
	if _, held = v.calledDead(m); held == "" || m.Live || m.Name == "" {
		return 0, "", ""
	}
	since = min(m.AgentGoneFor, m.DownFor)
	return since, fmt.Sprintf("no quorumd is known on its host, and %s has had no answer from it for %s", v.Self.Name,
		durationfmt.Seconds(since)), held
}

// notStray says why a standby is let go no more.
func (v View) notStray(m Member) string {
	_, why := v.calledDead(m)
	if why == "" {
		why = "it has not been lost for long enough"
	}
	return "the standby " + m.label() + " is not removed: " + why
}

// strayHeld says why no standby is let go, however lost it is; empty when one may be.
func (v View) strayHeld() string {
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

// standbyLost tells people of a standby that is lost, and what becomes of it.
func standbyLost(v View) (string, bool) {
	for m := range v.Cluster.learners() {
		since, why := v.strayed(m)
		held := ""
		if since == 0 {
			since, why, held = v.doubted(m)
		}
		if v.Op != nil || !v.Cluster.Reachable || v.foreign() || since < v.Limits.LearnerStall/2 {
			continue
		}
		text := fmt.Sprintf("%s, the standby: %s", m.label(), why)
		switch left := v.Limits.LearnerStall - since; {
		case held != "":
			return text + "; it is not removed, because " + held, true
		case v.strayHeld() != "":
			return fmt.Sprintf("%s; it is removed after %s, but: %s", text, durationfmt.Text(v.Limits.LearnerStall),
				v.strayHeld()), true
		case left > 0:
			return fmt.Sprintf("%s; it is removed in %s, and another host replaces it", text,
				durationfmt.Seconds(left)), true
		}
		return text + "; it is about to be removed, and another host replaces it", true
	}
	return "", false
}
