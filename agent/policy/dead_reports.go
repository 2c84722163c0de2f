// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// Dead is a voter that all required hosts report dead.
type Dead struct {
	Member Member
	For    time.Duration
	By     []string // the hosts that report it
	// In is how long it takes until another host may replace it; 0 if it may now, or if none ever does by itself.
	In time.Duration
	// Held is why it is not replaced; empty if it will be.
	Held        string
	Replacement string // the host that is replacing it; empty if none is yet
	// Surplus reports that there is a surplus voter, so this one is removed without a replacement.
	Surplus bool
}

// DeadVoters returns the voters that are dead by the last observations, and what happens to each.
func DeadVoters(v View) []Dead {
	if !v.Cluster.Reachable || v.foreign() {
		return nil
	}
	var all []Dead
	for m := range v.Cluster.voters() {
		since, _ := v.reportedDead(m)
		if since == 0 {
			continue
		}
		d := Dead{Member: m, For: since, In: max(0, v.Limits.DeadGrace-since), Surplus: v.hasSurplus()}
		for voter := range v.Cluster.voters() {
			if voter.Live {
				d.By = append(d.By, voter.label())
			}
		}
		slices.Sort(d.By)
		if d.Held = v.deadBlocked(m, d.In == 0); v.Op.replacesMember(m) {
			d.Held, d.Replacement = "", v.Op.HostName
		}
		all = append(all, d)
	}
	return all
}

// deadHeld explains why no host replaces a dead voter; empty if one may. Once the grace is over, a host that still
// waits for it to answer does not report it dead, or not for long enough: an agent that has restarted counts again from
// zero.
func (v View) deadBlocked(m Member, over bool) string {
	if why := v.repairBlocked("repair.dead", v.Limits.DeadGrace); why != "" {
		return why
	}
	if r, holds := vetoed(v, vetoSeveralDown, vetoReplaceAtRisk, vetoRepairsUnreadable, vetoRepairsSpent,
		vetoReplaceEven); holds {
		return r.Text
	}
	if v.hasSurplus() {
		return v.noRemover()
	}
	for learner := range v.Cluster.learners() { // only its own host could
		h, present := v.hostOf(learner)
		switch {
		case !present || h.Role != RoleStandby:
			return learner.label() + " is a learner, and etcd allows one at a time"
		case over && !v.caughtUp(learner):
			return fmt.Sprintf("the standby %s has not been within %d entries of the leader for %s", learner.label(),
				v.Limits.PromoteLag, durationfmt.Text(v.Limits.SteadyLag))
		}
		return v.noneReady(m, over, func(other Host) bool { return other.ID == h.ID })
	}
	return v.noneReady(m, over, func(Host) bool { return true })
}

// noRemover explains why no other voter's host removes a dead surplus voter; empty if one may.
func (v View) noRemover() string {
	for m := range v.Cluster.voters() {
		if h, present := v.hostOf(m); m.Live && present && h.Manage {
			return ""
		}
	}
	return "no agent of a live voter is in mode manage"
}

// repairHeld explains why no voter is replaced now; empty if one may be. The setting is the one that defines the grace.
func (v View) repairBlocked(setting string, grace time.Duration) string {
	switch {
	case grace == 0:
		return setting + " is off"
	case v.Pause != nil:
		return "the cluster is paused by " + v.Pause.By
	case v.Op != nil:
		return fmt.Sprintf("the %s of %s must end first", v.Op.Kind, v.Op.HostName)
	case v.blocksAll():
		return "a record in etcd cannot be read"
	}
	return ""
}

// noReplacement explains why no host could replace a voter; empty if one could.
func (v View) noReplacement(m Member) string {
	return v.noneReady(m, false, func(Host) bool { return true })
}

// unready explains why none of these hosts could replace a voter; empty if one could.
func (v View) noneReady(dead Member, over bool, among func(Host) bool) string {
	var why []string
	for _, h := range v.Hosts {
		switch {
		case h.Role != RoleSpare && h.Role != RoleStandby || h.PeerURL == dead.PeerURL || !among(h):
		case !h.Manage:
			why = append(why, h.Name+" only observes")
		case h.Waiting == "" || h.Waiting == VoterNotLive && !over:
			return ""
		case h.Waiting == VoterNotLive:
			why = append(why, h.Name+" has not reported it dead for long enough, as when its agent has just started")
		default:
			why = append(why, fmt.Sprintf("%s waits for %s", h.Name, h.Waiting))
		}
	}
	if len(why) == 0 {
		return "there is no standby and no spare"
	}
	return "no standby or spare is ready: " + strings.Join(why[:min(len(why), mostNamed)], ", ")
}

// mostNamed bounds the hosts that a reason names.
const mostNamed = 3

// Text describes it, with what happens when.
func (d Dead) Text(grace time.Duration) string {
	text := fmt.Sprintf("%s has been dead for %s, reported by %s", d.Member.label(), durationfmt.Seconds(d.For),
		strings.Join(d.By, ", "))
	return text + fate(d.Surplus, d.Replacement, d.Held, d.In, grace, fmt.Sprintf(" after %s", durationfmt.Text(grace)))
}

// fate describes what happens to a dead or unhealthy voter: which host replaces it, in how long, or why none does.
// after is the time it takes once the grace is over. A surplus voter is removed without a replacement.
func fate(tooMany bool, replacement, held string, in, grace time.Duration, after string) string {
	if tooMany {
		return fateOfSurplus(replacement, held, in, grace, after)
	}
	switch {
	case replacement != "":
		return "; " + replacement + " is replacing it"
	case grace == 0:
		return "; no host replaces it, because " + held
	case held != "" && in > 0:
		return fmt.Sprintf("; another host may replace it in %s, but: %s", durationfmt.Seconds(in), held)
	case held != "":
		return fmt.Sprintf("; another host may replace it%s, but: %s", after, held)
	case in > 0:
		return fmt.Sprintf("; another host replaces it in %s", durationfmt.Seconds(in))
	}
	return "; another host is about to replace it"
}

func fateOfSurplus(replacement, held string, in, grace time.Duration, after string) string {
	const why = ": surplus voter"
	switch {
	case replacement != "":
		return "; " + replacement + " removes it" + why
	case grace == 0:
		return "; no host removes it, because " + held
	case held != "" && in > 0:
		return fmt.Sprintf("; it may be removed in %s, but: %s", durationfmt.Seconds(in), held)
	case held != "":
		return fmt.Sprintf("; it may be removed%s, but: %s", after, held)
	case in > 0:
		return fmt.Sprintf("; it is removed in %s%s", durationfmt.Seconds(in), why)
	}
	return "; it is about to be removed" + why
}

// deadVoterSummary describes which of the voters that do not answer are dead, and what happens to them. If dead voters
// are replaced, it also explains why another one does not count as dead.
func (v View) deadVoterSummary() (text string, dead bool) {
	for _, d := range DeadVoters(v) {
		text, dead = text+"; "+d.Text(v.Limits.DeadGrace), true
	}
	for m := range v.Cluster.voters() {
		if m.Live || v.Limits.DeadGrace == 0 {
			continue
		}
		if since, why := v.reportedDead(m); since == 0 {
			text += fmt.Sprintf("; %s does not count as dead: %s", m.label(), why)
		}
	}
	return text, dead
}
