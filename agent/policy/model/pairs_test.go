// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The comparison with real etcd uses an abstraction of the model: only etcd's part of each explored world, and only the
// events that involve etcd. Explored traces with the same parts and events count as one, so a few hundred pairs of a
// state and an operation cover all traces.

// opKind is a kind of operation on a cluster.
type opKind uint8

const (
	opAdd     opKind = iota // MemberAddAsLearner, checked by etcd now
	opPromote               // MemberPromote at the leader
	opRemove                // MemberRemove
	opLateAdd               // an addition that etcd checked in an earlier state
	opLatePromote
	opLateRemove
	opStart // starts the unit
	opStop
	opKill
	opCrash // crashes the whole host
	opUp    // the outcome for an etcd that starts, or detects that it was removed
	opCut   // isolates the member from all others
	opHeal
	opEnv // sets the environment of the unit to arg
	opAside
	opKinds
)

func (k opKind) String() string {
	return [...]string{
		"add", "promote", "remove", "late add", "late promote", "late remove", "start", "stop", "kill", "crash", "up",
		"cut", "heal", "write environment", "move data aside",
	}[k]
}

type operation struct {
	kind opKind
	host uint8
	arg  uint8
}

// cluster is a state of etcd: a world without its agents.
type cluster struct{ key [maxHosts]uint16 }

// etcdOnly returns a world with only etcd's part of w.
func etcdOnly(w *world) world {
	c := world{n: w.n, lock: -1}
	for i := range w.n {
		h := &w.hosts[i]
		g := host{list: h.list, named: h.named, unit: h.unit, data: h.data, env: h.env, isolated: h.isolated}
		if g.unit == failed {
			g.unit = inactive
		}
		c.hosts[i] = g
	}
	c.tidy()
	return c
}

// clusterOf returns the state shared by all worlds that differ only in the order of their hosts. Host order[i] is at
// index i of the state.
func clusterOf(w *world) (c cluster, order [maxHosts]uint8) {
	bits := func(i uint8) uint16 {
		h := &w.hosts[i]
		var p packer
		p.put(h.list, 2)
		p.put(h.named, 1)
		p.put(h.unit, 2)
		p.put(h.data, 2)
		p.put(h.env, 2)
		p.put(h.isolated, 1)
		return uint16(p.v)
	}
	list := []uint8{0, 1, 2, 3, 4}[:w.n]
	slices.SortStableFunc(list, func(a, b uint8) int { return int(bits(b)) - int(bits(a)) })
	for i, h := range list {
		order[i], c.key[i] = h, bits(h)
	}
	return c, order
}

// world returns a world with n hosts in that state.
func (c cluster) world(n int) world {
	w := world{n: n, lock: -1}
	for i := range n {
		p := packer{v: uint64(c.key[i])}
		h := &w.hosts[i]
		h.list, h.named, h.unit, h.data, h.env, h.isolated = p.get(2), p.get(1), p.get(2), p.get(2), p.get(2), p.get(1)
	}
	return w
}

// text returns a state on one line.
func (c cluster) text() string {
	w := c.world(maxHosts)
	var parts []string
	for i := range w.n {
		if c.key[i] != 0 {
			parts = append(parts, hostName(i)+"="+w.hosts[i].etcdText())
		}
	}
	return strings.Join(parts, "  ")
}

func (h *host) etcdText() string {
	text := h.text()
	if h.data == remains {
		text += ",remains"
	}
	if h.list == learner && h.named == 0 {
		text += ",never-started"
	}
	if h.data == empty && h.list != unlisted {
		text += ",no-data"
	}
	return text + [...]string{"", ",join-env", ",new-env"}[h.env]
}

func (o operation) text() string {
	text := fmt.Sprintf("%s %s", o.kind, hostName(int(o.host)))
	switch {
	case o.kind == opEnv:
		text += " as " + [...]string{"none", "join", "new"}[o.arg]
	case o.kind == opUp && o.arg != 0:
		text += " (exit code 0)"
	}
	return text
}

// operationOf returns the operation on etcd in an event. ok is false if there is none.
func operationOf(e event, before, after *world) (o operation, ok bool) {
	h := &before.hosts[e.host]
	o = operation{host: e.host}
	runs := h.unit == starting || h.unit == active
	switch e.kind {
	case evLand:
		if h.outdated != 0 || e.arg != 0 {
			return o, false
		}
		switch h.step {
		case addLearner:
			o.kind = opAdd
		case promote:
			o.kind = opPromote
		case removeLearner, removeMember:
			o.kind, o.host = opRemove, h.target
		}
	case evLateAdd:
		o.kind = opLateAdd
	case evLatePromote:
		o.kind = opLatePromote
	case evLateRemove:
		o.kind = opLateRemove
	case evUnitChanges:
		o.kind, o.arg = opUp, e.arg
	case evEtcdDies:
		o.kind = opKill
	case evHostDies:
		o.kind = opCrash
	case evOperatorStops:
		o.kind = opStop
	case evOperatorStarts:
		o.kind = opStart
	case evHostBoots:
		o.kind = opStart
		return o, h.startGuard == 0 && (h.data == current || h.data == old)
	case evMemberCut:
		o.kind = opCut
	case evMemberHeals:
		o.kind = opHeal
	case evAgentDies:
		o.kind = opEnv
		return o, h.env != noEnv
	case evAct:
		switch {
		case e.arg != 0:
			return o, false
		case starts(h.step):
			o.kind = opStart
			return o, !runs
		case h.step == stopUnit:
			o.kind = opStop
			return o, runs
		case h.step == moveAside:
			o.kind = opAside
			return o, h.data != empty && after.hosts[e.host].data == empty
		case h.step == writeNewEnv:
			o.kind, o.arg = opEnv, newEnv
		case h.step == writeEnv:
			o.kind, o.arg = opEnv, joinEnv
			if h.outdated != 0 {
				o.arg = noEnv
			}
		default:
			return o, false
		}
	default:
		return o, false
	}
	return o, true
}

// do applies an operation to a world without agents, with the functions of the model.
func (o operation) do(w *world) {
	i := int(o.host)
	h := &w.hosts[i]
	switch o.kind {
	case opAdd, opLateAdd:
		w.add(i, o.kind == opLateAdd)
	case opPromote, opLatePromote:
		w.promote(i)
	case opRemove, opLateRemove:
		w.remove(i, o.kind == opLateRemove)
	case opStart:
		h.unit = starting
	case opStop, opKill:
		h.unit = inactive
	case opCrash:
		h.unit, h.env = inactive, noEnv
	case opUp:
		w.unitChanges(i, o.arg)
	case opCut:
		h.isolated = 1
	case opHeal:
		h.isolated = 0
	case opEnv:
		h.env = o.arg
	case opAside:
		h.data = empty
	}
	*w = etcdOnly(w)
}

// pair is a state with an operation on it.
type pair struct {
	at cluster
	operation
}

// pairs holds the pairs that an exploration has covered.
type pairs struct {
	count    map[pair]int // the number of transitions that each pair covers
	mismatch string       // how the effects of an event and its operation differ, or ""
}

// collectPairs explores the scopes and returns their pairs, and the number of states.
func collectPairs(t *testing.T, scopes []Scenario) (all pairs, states int) {
	t.Helper()
	all.count = map[pair]int{}
	for _, sc := range scopes {
		x := newExplorer(sc, rules{}, 2)
		var parts []*pairs
		for _, w := range x.workers {
			part := &pairs{count: map[pair]int{}}
			parts, w.watch = append(parts, part), part.record
		}
		r := x.run(t.Context())
		if r.Breach != nil {
			t.Fatal(r.Breach.Text)
		}
		states += r.States
		for _, part := range parts {
			all.mismatch += part.mismatch
			for q, n := range part.count {
				all.count[q] += n
			}
		}
	}
	return all, states
}

func TestAnEventAndItsOperationHaveTheSameEffectOnEtcd(t *testing.T) {
	t.Parallel()
	p, _ := collectPairs(t, slices.Concat(smallScenarios(), smallRemovals(), smallReplacements()))
	if p.mismatch != "" {
		t.Error(p.mismatch)
	}
}

func (p *pairs) record(e event, before, after *world) {
	from, to := etcdOnly(before), etcdOnly(after)
	at, order := clusterOf(&from)
	goal, _ := clusterOf(&to)
	o, ok := operationOf(e, before, after)
	if !ok {
		if at != goal {
			p.mismatch = fmt.Sprintf("event %d on %s has no operation on etcd, but changes\n%s\nto\n%s", e.kind,
				hostName(int(e.host)), at.text(), goal.text())
		}
		return
	}
	next := from
	o.do(&next)
	if got, _ := clusterOf(&next); got != goal {
		p.mismatch = fmt.Sprintf("%s changes\n%s\nto\n%s\nand the event of the model to\n%s", o.text(), at.text(),
			got.text(), goal.text())
	}
	p.count[pair{at, o.atPlace(order, from.n, at)}]++
}

// atPlace replaces the number of the operation's host with its index in a state. Identical hosts share an index.
func (o operation) atPlace(order [maxHosts]uint8, n int, at cluster) operation {
	place := slices.Index(order[:n], o.host)
	o.host = uint8(slices.Index(at.key[:], at.key[place]))
	return o
}
