// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorumd/quorumd/agent/policy"
)

// trace returns the shortest trace to a breach. The hosts of states in the table are sorted, so trace repeats the path
// from the start with unsorted hosts.
func (x *explorer) trace(f candidate) *Breach {
	var path []key
	begin := x.sc.initial()
	for r := f.parent; ; {
		at := x.shards[r.shard()].nodes[r.index()]
		path = append(path, at.key)
		if at.key == begin.canonical() {
			break
		}
		r = at.parent
	}
	slices.Reverse(path)
	m := newMachine(x.sc, x.workers[0].rules)
	w := x.sc.initial()
	var b strings.Builder
	fmt.Fprintf(&b, "     initially   %s\n", w.text())
	n := 0
	write := func(e event, before, after *world) {
		n++
		fmt.Fprintf(&b, "%3d. %s\n", n, m.text(e, before))
		if line := after.text(); line != before.text() {
			fmt.Fprintf(&b, "                 %s\n", line)
		}
	}
	for _, want := range path[1:] {
		var next world
		var by event
		m.expand(&w, func(e event, after *world, _ breach) {
			if after.canonical() == want {
				next, by = *after, e
			}
		})
		write(by, &w, &next)
		w = next
	}
	if f.found < targetMissed {
		m.expand(&w, func(e event, after *world, found breach) {
			if found == f.found && after.canonical() == f.key {
				write(e, &w, after)
				f.found = fine // write only the first such event
			}
		})
		f.found = x.breachAt.found
	} else {
		m.traceLivenessRun(&b, &w, f.found)
	}
	p := promises()[f.found]
	return &Breach{Promise: p.name, Text: p.text, Trace: b.String()}
}

// traceLivenessRun writes the liveness run that ends in the breach.
func (m *machine) traceLivenessRun(b *strings.Builder, from *world, want breach) {
	m.inOrder = true
	for _, e := range m.endings() {
		w, checked := m.applyEnding(from, e)
		run := w
		m.live = map[uint64]struct{}{}
		if !checked || m.runUntilQuiescent(&run, e) != want {
			continue
		}
		fmt.Fprintf(b,
			"     No fault occurs from here on. Faults are healed: %t; hosts that are down stay down: %t; "+
				"agents that are down stay down: %t; an unhealthy voter stays too slow to answer: %t; "+
				"late calls land: %t.\n", e.healed, e.hostsStayDown, e.agentsStayDown, e.staysTardy, e.lateCallsLand)
		m.live = map[uint64]struct{}{}
		for range 40 {
			moved := m.pass(&w) || m.advanceTime(&w)
			fmt.Fprintf(b, "     ...         %s\n", w.text())
			if !moved {
				return
			}
		}
		return
	}
}

// text describes an event in a sentence.
func (m *machine) text(e event, w *world) string {
	h := int(e.host)
	a := &w.hosts[h]
	n := hostName(h)
	switch e.kind {
	case evRound:
		s := w.observe(h)
		s.setViewpoint(e.arg / 2)
		c := m.decide(&s)[e.arg%2]
		if c.step == none {
			return fmt.Sprintf("%s observes and waits: %s (%s)", n, c.reason, c.why)
		}
		return fmt.Sprintf("%s observes (%s) and decides: %s%s%s", n, s.text(), kindOf(c.step), c.targetText(),
			inParentheses(c.why))
	case evAct:
		if e.arg == 2 || starts(a.step) && e.arg != 0 {
			return fmt.Sprintf("fault: %s's agent dies %s in %s", n, [...]string{"", "early", "late"}[e.arg],
				kindOf(a.step))
		}
		if e.arg != 0 {
			return fmt.Sprintf("%s: %s is not answered in time; it may still land", n, kindOf(a.step))
		}
		return fmt.Sprintf("%s begins: %s", n, kindOf(a.step))
	case evLand:
		return fmt.Sprintf("%s's %s is answered, and takes effect if etcd accepts it", n, kindOf(a.step))
	case evTimeout:
		return fmt.Sprintf("%s's %s is not answered in time; it may still land", n, kindOf(a.step))
	case evLateWrite:
		if e.arg != 0 {
			return fmt.Sprintf("%s's late %s is lost", n, kindOf(a.lateWrite))
		}
		return fmt.Sprintf("%s's late %s lands", n, kindOf(a.lateWrite))
	case evUnitChanges:
		if e.arg != 0 && a.data != old {
			return fmt.Sprintf("etcd on %s receives an outdated member list, and exits", n)
		}
		return fmt.Sprintf("etcd on %s starts, or exits if it cannot", n)
	case evHealthChanges:
		return fmt.Sprintf("fault: %s %s", n,
			[...]string{"becomes healthy", "becomes SLOW", "becomes UNKNOWN", "has a wrong clock"}[e.arg])
	case evCommandEnds:
		return fmt.Sprintf("the command on %s %s", n, [...]string{"succeeds", "fails, or is missing"}[e.arg])
	case evRequest:
		return fmt.Sprintf("%s receives a request: %s", n, workText(e.arg))
	case evRequestRemoval:
		return fmt.Sprintf("%s receives a removal request for %s%s", n, hostName(int(e.arg/2)),
			[...]string{"", ", even if it is live"}[e.arg%2])
	case evRemovalExpires:
		return "the removal request expires"
	case evRequestTransfer:
		return fmt.Sprintf("%s receives a request to transfer leadership to %s", n, hostName(int(e.arg)))
	case evTransferExpires:
		return "the request to transfer leadership expires"
	case evRetire:
		if e.arg == clearsSuccessor {
			return fmt.Sprintf("an operator lets any host replace %s", n)
		}
		if e.arg != 0 {
			return fmt.Sprintf("an operator retires %s and names %s to replace it", n, hostName(int(e.arg-1)))
		}
		return fmt.Sprintf("an operator retires %s, or undoes that", n)
	case evRaised:
		return "an operator restarts etcd with the configured limit on learners"
	case evLowered:
		return fmt.Sprintf("an operator restarts the etcd of %s with a limit of one learner", n)
	case evResize:
		if w.resized != 0 {
			return "an operator resizes the cluster back"
		}
		return fmt.Sprintf("an operator sets the size of the cluster to %d", m.ResizeTo)
	case evDecided:
		return "an operator resumes or aborts the upgrade"
	case evLearnerLags:
		return "the learner does not catch up within the settle time"
	case evSettled:
		return "the settle time passes"
	case evCooled:
		return "the cooldown passes"
	case evStalled:
		return "the learner makes no progress until its timeout"
	case evReported:
		return "every voter's agent has reported again"
	case evOrphaned:
		return "the operation has been without its lock for the grace period"
	case evLeaseOver:
		return fmt.Sprintf("the lease of %s's lock ends at the server", hostName(int(w.lock)))
	}
	return strings.ReplaceAll(eventText()[e.kind], "%s", n)
}

func eventText() map[kind]string {
	return map[kind]string{
		evLateAdd:          "the late add-learner of %s lands",
		evLatePromote:      "the late promotion of %s lands",
		evLateUpdate:       "the late update of %s's peer URL lands",
		evConnected:        "the running members connect to the registered peer URL of %s",
		evLateRemove:       "the late removal of %s lands",
		evGraceOver:        "%s has been reported dead or unhealthy for the grace period",
		evProgress:         "the learner on %s catches up and keeps up for a while",
		evRetryDue:         "some time has passed since %s's failed step",
		evBackoffOver:      "%s's backoff is over",
		evEjectionWaitOver: "%s was ejected and has been healthy for long enough",
		evValidityOver:     "%s's lock has expired by %s's clock",
		evAgentStarts:      "%s's agent starts",
		evAgentResumes:     "%s's agent resumes",
		evHostBoots:        "%s boots",
		evLinkHeals:        "%s's agent reaches etcd again",
		evMemberHeals:      "%s's member reaches the others again",
		evReachHeals:       "%s's agent reaches the other members again",
		evHealthy:          "%s is healthy again",
		evAlarm:            "etcd raises its alarm", evAlarmEnds: "the alarm is cleared",
		evOperatorResumes:  "an operator resumes the cluster",
		evOperatorStarts:   "an operator starts etcd on %s",
		evServed:           "the member has served for a while after its operation",
		evRecordAges:       "the operation record has not changed for a long time",
		evRequestEnds:      "an operator ends the request of %s",
		evReboots:          "%s reboots as requested",
		evExternalStop:     "etcd on %s, reported safe to stop, is stopped externally",
		evAgentDies:        "fault: %s's agent dies",
		evAgentPauses:      "fault: %s's agent is stopped (SIGSTOP)",
		evEtcdDies:         "fault: etcd on %s dies",
		evHostDies:         "fault: %s goes down",
		evLinkCut:          "fault: %s's agent is cut off from etcd",
		evMemberCut:        "fault: %s's member is cut off from the others",
		evReachLost:        "fault: %s's agent reaches no other member",
		evTooLong:          "the operation has lasted too long",
		evFallsBehind:      "the learner on %s falls behind",
		evOperatorPauses:   "an operator pauses the cluster",
		evOperatorReleases: "an operator releases the operation",
		evOperatorStops:    "an operator stops etcd on %s",
		evForged:           "fault: another program records a join of %s in the rollback phase",
		evDeleted:          "fault: the operation record is deleted",
		evSwapped:          "fault: the disk of %s is replaced by an empty one",
	}
}

func inParentheses(why string) string {
	if why == "" {
		return ""
	}
	return " (" + why + ")"
}

func (c choice) targetText() string {
	if namesTarget(c.step) {
		return " of " + hostName(int(c.target))
	}
	return ""
}

// text returns what a host observes.
func (s *observation) text() string {
	if s.reachable == 0 {
		return "no voter reachable"
	}
	var parts []string
	for i, g := range s.hosts[:s.n] {
		if g.list == unlisted {
			continue
		}
		state := "live"
		if g.live == 0 {
			state = "not live"
		}
		parts = append(parts, hostName(i)+" "+[...]string{"", "learner", "voter"}[g.list]+" "+state)
	}
	lock := "lock free"
	if s.lockHeld != 0 {
		lock = "lock held by another host"
	}
	if s.lockMine != 0 {
		lock = "lock held by this host"
	}
	return strings.Join(parts, ", ") + "; " + lock
}

// text returns a world on one line.
func (w *world) text() string {
	var parts []string
	for i := range w.n {
		parts = append(parts, hostName(i)+"="+w.hosts[i].text()+w.urls[i].text())
	}
	if w.lock >= 0 {
		parts = append(parts, "lock="+hostName(int(w.lock)))
	}
	if w.op != 0 {
		phase := string(opPhase(w.opPhase))
		if w.opVerify != 0 {
			phase = string(policy.PhaseVerify)
		}
		parts = append(parts, "op="+hostName(int(w.opHost))+"/"+phase)
	}
	if w.dead|w.opReplace != 0 {
		parts = append(parts, fmt.Sprintf("dead=%d(witness:%d,op:%d,target:%d,gone:%d,reported:%d)", w.dead,
			w.witness, w.opReplace, w.rpTarget, w.rpGone, w.opReported))
	}
	if w.resized|w.opLeave != 0 {
		parts = append(parts, fmt.Sprintf("resized=%d(leave:%d,retired:%d,successor:%d)", w.resized, w.opLeave,
			w.retired, w.successor))
	}
	if w.trRequested != 0 {
		parts = append(parts, fmt.Sprintf("transfer=%s(at:%s,expired:%d)", hostName(int(w.trTarget)),
			hostName(int(w.trHost)), w.trExpired))
	}
	if w.rmRequested|w.opRemove != 0 {
		parts = append(parts, fmt.Sprintf("remove=%s(requested:%d,expired:%d,begun:%d,op:%d,even-live:%d,gone:%d)",
			hostName(int(w.rmTarget)), w.rmRequested, w.rmExpired, w.rmBegun, w.opRemove, w.rmEvenLive, w.rmGone))
	}
	return strings.Join(parts, "  ")
}

func (h *host) text() string {
	text := [...]string{"spare", "learner", "voter"}[h.list]
	if h.list != unlisted || h.unit != inactive {
		text += ":" + [...]string{"stopped", "failed", "starting", "up", "stopping", "restarting", "taken-down"}[h.unit]
	}
	for _, mark := range []struct {
		on   bool
		text string
	}{
		{h.data == old, "old data"},
		{h.down != 0, "host down"},
		{h.agent == down, "agent down"},
		{h.agent == paused, "agent stopped"},
		{h.cutOff != 0, "agent cut off"},
		{h.isolated != 0, "member cut off"},
		{h.health == slow, "SLOW"},
		{h.health == unknown, "UNKNOWN"},
		{h.hasToken != 0 && h.valid != 0, "has lock"},
		{h.lateAdd != 0, "late add"},
		{h.latePromote != 0, "late promotion"},
		{h.lateRemove != 0, "late removal"},
		{h.lateUpdate != 0, "late update"},
		{h.work != noWork, "requested: " + workText(h.work)},
		{
			h.program != 0,
			[...]string{
				"", "program runs", "program done", "program failed", "program cut off",
				"program done, old database deleted", "program failed, leftover files deleted",
			}[h.program],
		},
		{h.ended != 0, "ended"},
		{h.stopped != 0, "recorded as stopped"},
		{h.startGuard != 0, "start guard"},
		{h.ejection != 0, [...]string{"", "ejected", "ejected, healthy for long enough"}[h.ejection]},
	} {
		if mark.on {
			text += "," + mark.text
		}
	}
	return strings.ReplaceAll(text, " ", "-")
}
