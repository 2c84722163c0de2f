// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/quorumd/quorumd/agent/policy"
)

// stops ends the etcd of a host, and with it all connections of that etcd.
func (w *readdressWorld) stops(h int) {
	w.hosts[h].runs = false
	for i := range w.hosts {
		w.hosts[i].to[h], w.hosts[h].to[i] = unconnected, unconnected
	}
	if w.op == h {
		w.served = false
	}
	for i := range w.hosts {
		if w.leader == h && w.hosts[i].runs {
			w.leader = i
		}
	}
}

func (w *readdressWorld) starts(h int) {
	g := &w.hosts[h]
	g.runs, g.listens, w.restarted, g.process = true, g.env, w.restarted || w.op == h, g.configured
	if !w.hosts[w.leader].runs {
		w.leader = h
	}
}

// recordChanged marks a change of the operation's record, which all hosts have to read again.
func (w *readdressWorld) recordChanged() {
	for i := range w.hosts {
		w.hosts[i].answered = false
	}
	w.owned, w.old = true, false
}

// updated applies an update of the member list.
func (s readdressScope) updated(w *readdressWorld, h int) {
	g := &w.hosts[h]
	g.sent = false
	if w.running() < 2 || g.reg == g.sentURL {
		return
	}
	for i, other := range w.hosts {
		if s.https && g.sentURL == 1 && i != h && !other.process {
			w.breach = "no https while a member has no certificate"
		}
	}
	if s.https && g.sentURL == 1 && g.unfit {
		w.breach = "no https with an unsuitable certificate"
	}
	// a return to the verified URL at which etcd still listens needs no new verification
	g.reg, g.unverified, g.by = g.sentURL, g.sentURL != g.verified || g.sentURL != g.listens, [readdressHosts]bool{}
	for i := range w.hosts {
		if w.hosts[i].to[h] == connected {
			w.hosts[i].to[h] = outdated
		}
	}
}

// act lets a host's agent take one step.
func (s readdressScope) act(w *readdressWorld, h int) {
	d, g := s.decide(w, h), &w.hosts[h]
	if d.Notes.Request.Change == policy.RequestSeen && g.asked {
		g.request.Begun = true
		g.request = g.request.Recorded()
	}
	if d.Notes.Request.Change == policy.RequestEnds {
		g.asked, g.request = false, policy.Request{}
	}
	step, holds := d.Step, w.lock == h
	if step.Kind.Info().Locked && !holds && s.mistake != "a step does not confirm the lock" {
		return
	}
	switch step.Kind {
	case policy.StepNone:
	case policy.StepTakeLock:
		if w.lock < 0 && w.running() >= 2 {
			w.lock, w.owned = h, false
		}
	case policy.StepReleaseLock:
		if holds {
			w.lock = -1
		}
	case policy.StepBeginCycle, policy.StepRecordAgain:
		if w.op >= 0 {
			w.breach = "one operation at a time"
		}
		g.request = g.request.Begins()
		w.op, w.phase, w.opURL, w.served, w.restarted = h, policy.PhaseBegun, g.reg, false, false
		w.recordChanged()
	case policy.StepSetPhase:
		w.phase = step.Phase
		w.recordChanged()
	case policy.StepTransferLeadership:
		w.leader = int(step.MemberID) - 1
	case policy.StepUpdateMember:
		g.due, g.sentURL = true, bit(step.PeerURL == s.url(h, 1))
	case policy.StepTakeDown:
		if w.running() < readdressHosts && g.runs {
			w.breach = "one member at a time is down"
		}
		next, valid := g.request.StopsEtcd()
		if g.request = next; valid {
			if step.WriteEnv {
				g.env, g.envReady = g.conf, true
			}
			w.stops(h)
		}
	case policy.StepWriteEnv:
		g.env, g.envReady = g.conf, true
	case policy.StepStartUnit:
		if !g.runs {
			w.starts(h)
		}
		g.request = g.request.EtcdStarted()
	case policy.StepEndOp:
		if g.unverified || g.listens != g.reg && g.runs && step.Outcome == policy.Cycled {
			w.breach = "an operation ends only after the new URL is verified"
		}
		w.ended()
		if d.Notes.Request.Change == policy.RequestEnding {
			g.asked, g.request = false, policy.Request{}
		} else {
			g.request = g.request.GivenUp()
		}
	default:
		w.breach = "a changed URL changes no member: " + string(step.Kind)
	}
}

// ended deletes the record of the operation.
func (w *readdressWorld) ended() {
	w.op, w.phase, w.opURL, w.served, w.restarted = -1, "", 0, false, false
	w.recordChanged()
}

// sends sends the update that an agent has decided on, unless its host no longer holds the lock.
func (s readdressScope) sends(w *readdressWorld, h int) {
	g := &w.hosts[h]
	g.due, g.sent = false, w.lock == h || s.mistake == "a step does not confirm the lock"
	switch {
	case !g.sent:
	case w.lock != h:
		w.breach = "no change without the lock"
	case !g.asked || w.op != h:
		w.breach = "no change without a request"
	}
}

// successors returns the worlds after each possible event.
func (s readdressScope) successors(w readdressWorld) (next []readdressWorld, events []string) {
	add := func(text string, change func(n *readdressWorld)) {
		n := w
		change(&n)
		n.tidy()
		if n != w {
			next, events = append(next, n), append(events, text)
		}
	}
	quorum := w.running() >= 2
	for h := range w.hosts {
		g, name := w.hosts[h], hostName(h)
		if g.due {
			add("the agent of "+name+" sends the update", func(n *readdressWorld) { s.sends(n, h) })
		}
		if !g.runs && !g.request.Stopped {
			add("etcd of "+name+" starts", func(n *readdressWorld) { n.starts(h) })
		}
		if w.op == h && !w.old {
			add("the record of "+name+" gets old", func(n *readdressWorld) { n.old = true })
		}
		if !g.agentDown && !g.sent && !g.due {
			add("the agent of "+name+" acts", func(n *readdressWorld) { s.act(n, h) })
		}
		if w.op >= 0 && !g.agentDown && quorum && s.publishes(&w, h) {
			add(name+" publishes its record", func(n *readdressWorld) {
				n.hosts[h].answered = true
				for i := range n.hosts { // GET /version was answered by the members in question
					if s.https && i != h && (i == w.op) == (w.phase == policy.PhaseVerify) && s.dials(&w, h, i) {
						n.hosts[i].by[h] = n.hosts[i].unverified
					}
				}
			})
		}
		for i := range w.hosts {
			switch {
			case i == h || !g.runs || !w.hosts[i].runs:
			case g.to[i] != connected && s.dials(&w, h, i) && (s.https || g.to[i] == unconnected):
				add(name+" connects to "+hostName(i), func(n *readdressWorld) { n.hosts[h].to[i] = connected })
			// the connection from host i to host h makes i look active to h
			case s.https && g.to[i] == unconnected && w.hosts[i].to[h] == connected:
				add(hostName(i)+" looks active to "+name, func(n *readdressWorld) { n.hosts[h].to[i] = outdated })
			}
		}
		if s.https {
			s.corrections(&w, h, add)
		}
		if g.sent {
			add("the update of "+name+" lands", func(n *readdressWorld) { s.updated(n, h) })
			add("the update of "+name+" is lost", func(n *readdressWorld) { n.hosts[h].sent = false })
		}
		if g.agentDown {
			add("the agent of "+name+" starts", func(n *readdressWorld) { n.hosts[h].agentDown = false })
			if w.lock == h {
				add("the lock of "+name+" expires", func(n *readdressWorld) { n.lock = -1 })
			}
		}
		if w.op == h && g.runs && !w.served && quorum {
			add(name+" has served for long enough", func(n *readdressWorld) { n.served = true })
		}
		if w.faults < s.faults {
			s.faultsOf(&w, h, add)
		}
	}
	return next, events
}

// publishes reports whether a host's agent answers the operation's record; see Round.AnswersNow in package round.
func (s readdressScope) publishes(w *readdressWorld, h int) bool {
	g := w.hosts[h]
	if s.mistake == "a record is published before the connection" {
		return true
	}
	answers := func(i int) bool { // GET /version
		return s.mistake == "an active connection counts as an answer" || !s.https || w.hosts[i].reg == 0 ||
			g.configured && !g.unfit && w.hosts[i].process && !w.hosts[i].unfit && w.hosts[i].listens == 1
	}
	switch w.phase {
	case policy.PhaseVerify:
		probed := w.hosts[w.op].reg == w.hosts[w.op].listens // by the agent, at the registered URL
		return h == w.op || g.to[w.op] != unconnected && probed && answers(w.op)
	case policy.PhaseReady:
		for i := range w.hosts {
			if i != h && i != w.op && (g.to[i] == unconnected || w.hosts[i].reg != w.hosts[i].listens || !answers(i)) {
				return false // no connection, or the agent's own probe of the registered URL fails
			}
		}
		return true
	}
	return false
}

// corrections adds what operators do so that every host has a suitable certificate: they renew it at any time, and
// restart etcd only while no operation is in flight.
func (s readdressScope) corrections(w *readdressWorld, h int, add func(string, func(*readdressWorld))) {
	g, name := &w.hosts[h], hostName(h)
	if g.unfit {
		add("an operator renews the certificate of "+name, func(n *readdressWorld) { n.hosts[h].unfit = false })
	}
	if !g.process && g.runs && w.op < 0 && w.running() == readdressHosts && w.lock < 0 {
		add("etcd of "+name+" is restarted with its certificate", func(n *readdressWorld) {
			n.stops(h)
			n.starts(h)
		})
	}
}

func (s readdressScope) faultsOf(w *readdressWorld, h int, add func(string, func(*readdressWorld))) {
	g, name := w.hosts[h], hostName(h)
	fault := func(text string, change func(n *readdressWorld)) {
		add(text, func(n *readdressWorld) { n.faults++; change(n) })
	}
	if !g.agentDown {
		fault("the agent of "+name+" crashes", func(n *readdressWorld) {
			n.hosts[h].agentDown, n.hosts[h].envReady, n.hosts[h].answered = true, false, false
			n.hosts[h].due = false
		})
	}
	if g.runs && w.running() == readdressHosts {
		fault("etcd of "+name+" crashes", func(n *readdressWorld) { n.stops(h) })
	}
	if g.due && w.lock == h {
		fault("the lock of "+name+" expires, because its agent is paused", func(n *readdressWorld) { n.lock = -1 })
	}
	if w.op == h && !g.sent && !g.due {
		fault("an operator releases the operation of "+name, func(n *readdressWorld) {
			n.ended()
			n.released = true
		})
	}
	if g.asked && !g.request.Ended && !g.agentDown {
		fault("an operator ends the request of "+name, func(n *readdressWorld) {
			next, cancelled, _ := n.hosts[h].request.Finished(false, false)
			if n.hosts[h].request = next; cancelled {
				n.hosts[h].asked, n.hosts[h].request = false, policy.Request{}
			}
		})
	}
	if !g.agentDown {
		fault("an operator changes the configuration of "+name, func(n *readdressWorld) {
			n.hosts[h].conf, n.hosts[h].envReady = 1-n.hosts[h].conf, false
		})
	}
}

// explore explores the worlds. After a release, operators repair what is left.
func (s readdressScope) explore() (string, int) {
	s.cache = map[readdressSeen]policy.Decision{}
	return worlds[readdressWorld]{
		first: s.initial(), successors: s.successors, liveness: "every request ends",
		breach: func(w readdressWorld) string { return w.breach },
		faults: func(w readdressWorld) int { return w.faults },
		ends:   func(w readdressWorld) bool { return w.op < 0 && w.quiet() || w.released },
	}.explore()
}
