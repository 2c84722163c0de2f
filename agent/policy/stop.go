// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/health"
)

// stopMember stops the member's etcd, after the operator's own hooks and without its leadership.
func stopMember(v View, m Member) Decision {
	if r, holds := vetoed(v, vetoOperationInFlight, vetoCommonCause, vetoQuorumAtRisk, vetoLearnerUnsettled); holds {
		// nothing is done yet: others may go first
		if v.Op.Phase == PhaseBegun && v.Asked.Before.State != HooksRunning && !v.Asked.Stopped {
			return do(Step{Kind: StepEndOp, Outcome: r.Code, Why: r.Text})
		}
		// Another one is in its turn that needs the lock to come to its end; or the others cannot spare this host for
		// so long that their words are old: what makes them more may be a join or a replacement, which wait for this
		// turn. An end from here, if it were not answered, could land after etcd is stopped; a step back first makes
		// it void then.
		inTheWay := r.Code == OperationInFlight || r.Code == QuorumAtRisk && v.Op.WrittenFor > v.Limits.HandOver
		switch {
		case v.Op.Phase == PhaseBegun || !inTheWay || mayRun(v):
		case !v.Asked.Stopped:
			return do(Step{Kind: StepSetPhase, Phase: PhaseBegun, MemberID: m.ID, Why: r.Text})
		case v.Self.Drives && v.Unit.State == UnitActive && !v.Asked.Work.info().byWord && !v.Asked.External:
			return do(Step{Kind: StepStartUnit, Why: "it runs already but is still recorded as stopped"})
		}
		if d, decided := notSafe(v, m, r); decided {
			return d
		}
		return Decision{Reasons: []Reason{r}}
	}
	if v.Op.Phase == PhaseBegun {
		switch h := v.Asked.Before; h.State {
		case HooksDue:
			return start(h, HookRunning, Step{Kind: StepRunHooks, Why: "before etcd is stopped"})
		case HooksRunning:
			return wait(HookRunning, "%s", h.Text)
		case HooksFailed:
			return do(Step{Kind: StepEndOp, Outcome: HookFailed, Why: h.Text})
		}
		return do(Step{Kind: StepSetPhase, Phase: PhaseReady, MemberID: m.ID})
	}
	if v.Asked.Work == WorkRestart && !v.Asked.Seen {
		// That it was restarted, the operation tells and nothing else: if its record is deleted before it stands by
		// this disk, it would be restarted once more.
		return wait(StepFailed, "this host's disk does not record the operation yet, and the write is retried: "+
			"etcd is restarted after that; journalctl -u quorumd shows disk errors")
	}
	if d, decided := hearOthers(v, m); decided {
		return d
	}
	if m.Leader {
		if d, decided := handOver(v); decided {
			return d
		}
	}
	if !v.Self.Drives {
		return lentOut(v)
	}
	if v.Asked.Work == WorkRestart {
		return do(Step{Kind: StepRestartUnit})
	}
	return do(Step{Kind: StepTakeDown, Why: string(v.Asked.Work)})
}

// hearOthers waits until every other voter's host has told how it is since this one was ready. Words that have grown
// old meanwhile, in a pause or while something else was in the way, are asked for anew, which also starts the time of
// the hand-over anew: it is not used up by the waiting. An etcd that its agent has started in the phase after, because
// no voter answered, is asked about anew: what is known of the others may be of before. One that a person has started
// under a maintenance is not, it was to be down; nor does a machine ask that goes down within seconds whatever it
// hears.
func hearOthers(v View, m Member) (Decision, bool) {
	if m.Learner || v.Asked.Hurried {
		return Decision{}, false
	}
	own := v.Self.Drives && !v.Asked.External && !v.Asked.Work.info().byWord
	if v.Op.Phase == PhaseDown && own && !mayRun(v) { // beside a program that runs it is stopped at once
		return do(Step{
			Kind: StepSetPhase, Phase: PhaseReady, MemberID: m.ID, Why: "etcd runs again: the other voters are " +
				"asked again",
		}), true
	}
	if v.Op.Phase != PhaseReady {
		return Decision{}, false
	}
	if ids, names := unheard(v, v.Self.PeerURL); len(ids) > 0 {
		d := wait(VerdictAwaited, "%s waits for fresh health states from %s", v.Self.Name, listed(names))
		d.Again, d.Behind = lookSoon, ids
		return d, true
	}
	old := v.Op.WrittenFor > v.Limits.HandOver && v.Failed.Kind != StepMoveLeader ||
		v.Op.WrittenFor > 2*v.Limits.HandOver
	if !old {
		return Decision{}, false
	}
	return do(Step{
		Kind: StepSetPhase, Phase: v.Op.Phase, MemberID: v.Op.MemberID,
		Why: "the other voters are asked for fresh health states",
	}), true
}

// unheard gives the hosts of the other voters that have not told how they are since this one was ready to be stopped.
// Until they have, their verdicts may be as old as an agent that hangs is given before it counts as gone. The member
// with that peer URL is not asked, nor is this host, which answers nobody but others.
func unheard(v View, but string) (ids, names []string) {
	for m := range v.Cluster.voters() {
		asked := m.PeerURL != but && m.PeerURL != v.Self.PeerURL
		if h, present := v.hostOf(m); asked && present && !h.Answered {
			ids, names = append(ids, h.ID), append(names, h.Name)
		}
	}
	return ids, names
}

// listed gives names as people write them.
func listed(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// handOver moves leadership to the best voter. Where that fails again and again, the reason decides:
// a person who stands at the machine is not kept waiting for it, a restart that nobody waits for is.
func handOver(v View) (Decision, bool) {
	best, found := bestVoter(v, v.Self.PeerURL)
	failing := v.Failed.Kind == StepMoveLeader && v.Op.WrittenFor > v.Limits.HandOver
	switch {
	case failing && v.Asked.Work.info().byWord:
		return Decision{}, false
	case failing:
		d := wait(LeaderStays, "for %s: %s", durationfmt.Seconds(v.Op.WrittenFor), v.Failed.Text)
		if v.Op.WrittenFor > 2*v.Limits.HandOver { // what is written next starts the time anew
			d = do(Step{
				Kind: StepSetPhase, Phase: v.Op.Phase, MemberID: v.Op.MemberID,
				Why: "the leadership transfer is retried",
			})
		}
		return d, true
	case !found:
		return Decision{}, false // quorumAtRisk has let pass that there is none
	}
	return do(Step{Kind: StepMoveLeader, MemberID: best.ID, Why: "to " + best.label()}), true
}

// bestVoter gives the voter that leadership is best moved to before the one with that peer URL stops or goes: one that
// is not to be taken down soon itself, in good health, with the quicker disk, the nearer, connected the longest.
func bestVoter(v View, leaves string) (Member, bool) {
	return bestVoterOf(v, func(m Member) bool {
		return m.PeerURL != leaves && v.doubt(m, health.Leadership) == ""
	})
}

// bestVoterOf gives that of the voters that may, whose agents are present.
func bestVoterOf(v View, may func(Member) bool) (Member, bool) {
	var best Member
	var bestHost Host
	found := false
	for m := range v.Cluster.voters() {
		h, present := v.hostOf(m)
		if !present || !may(m) {
			continue
		}
		if !found || betterLeader(m, h, best, bestHost) {
			best, bestHost, found = m, h, true
		}
	}
	return best, found
}
