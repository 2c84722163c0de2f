// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// bootstrapHosts is the number of hosts in the worlds in which the hosts of bootstrap.hosts create the cluster.
const bootstrapHosts = 3

// bootstrapHost is a host of a bootstrapWorld.
type bootstrapHost struct {
	list      int // the number of the list in its configuration
	promised  string
	attempt   string
	requested bool                  // it has a request to create a cluster
	decided   bool                  // it has decided to create the cluster
	published uint8                 // the number of its published answer; only used if requests are explored
	done      bool                  // it has belonged to a cluster
	data      bool                  // its data directory contains data of a cluster
	answers   [bootstrapHosts]uint8 // by host: the number of the answer; 0 if there is none
	pending   policy.BootstrapNote  // what the policy has decided to record; it is not on disk yet
}

// bootstrapWorld is one state. The answers that a host has received may have any age. This includes more orders of
// events than are possible in reality, where agents limit the age of an answer.
type bootstrapWorld struct {
	hosts               [bootstrapHosts]bootstrapHost
	attempts, losses    int
	changes, forgets    int
	requests, cancelled int
	clusters            int
}

// bootstrapScope limits the events to explore, and may seed a mistake.
type bootstrapScope struct {
	lists           [2][]int // the hosts in each list
	initial         [bootstrapHosts]int
	losses, changes int
	forgets         int   // how many times quorumd loses its notes while etcd keeps its data, as after a reinstallation
	foreign         []int // hosts that begin with data of another cluster, which no host joins
	requests        int   // how many times an operator requests a cluster; 0: the listed hosts create one automatically
	cancels         int   // how many times a request is cancelled
	mistake         string
	answers         *[]policy.BootstrapAnswer // all answers so far, by number
	cache           map[hostState]bootstrapDecision
}

// hostState is everything on which a host's answer and decision depend.
type hostState struct {
	host int
	bootstrapHost
}

// bootstrapDecision is what the policy decides in a hostState.
type bootstrapDecision struct {
	answer policy.BootstrapAnswer
	note   policy.BootstrapNote
	step   policy.StepKind
}

// decide returns the answer, the note and the step of the policy for a host.
func (s bootstrapScope) decide(w *bootstrapWorld, h int) bootstrapDecision {
	key := hostState{h, w.hosts[h]}
	key.pending = policy.BootstrapNote{}
	m, known := s.cache[key]
	if !known {
		v := s.view(w, h)
		m.answer = policy.BootstrapAnswerOf(v)
		if s.mistake == "a promise is overwritten" && v.BootstrapAttempt.First != v.Self.Name {
			v.BootstrapAttempt.PromisedList, v.BootstrapAttempt.Attempt = "", ""
		}
		d := policy.Decide(v)
		m.note, m.step = d.Notes.BootstrapAttempt, d.Step.Kind
		s.cache[key] = m
	}
	return m
}

func bootstrapName(host int) string { return string(rune('a' + host)) }

func (s bootstrapScope) view(w *bootstrapWorld, h int) policy.View {
	me := w.hosts[h]
	list := s.lists[me.list]
	f := policy.BootstrapAttempt{
		List: fmt.Sprint("list ", me.list), First: bootstrapName(list[0]),
		PromisedList: me.promised, Attempt: me.attempt, OnRequest: s.requests > 0,
	}
	for _, g := range list {
		if g == h {
			continue
		}
		a := policy.BootstrapAnswer{Name: bootstrapName(g), Silent: "not asked"}
		if number := me.answers[g]; number > 0 {
			a = (*s.answers)[number-1]
		}
		if me.published > 0 {
			a.Asked = (*s.answers)[me.published-1].Phase
		}
		switch s.mistake {
		case "a host asks before it publishes its request":
			a.Asked = policy.BootstrapAsking
		case "a decision does not count as a request":
			if a.Phase == policy.BootstrapDecided {
				a.Phase, a.Past = policy.BootstrapNone, ""
			}
		case "a cluster does not count as a request":
			if a.Phase == policy.BootstrapCluster {
				a.Phase, a.Past = policy.BootstrapNone, ""
			}
		case "the first listed host does not wait for the others":
			if a.Phase == policy.BootstrapAsking && a.Name > bootstrapName(h) {
				a.Phase, a.Past = policy.BootstrapNone, ""
			}
		case "a host that does not answer a request is skipped":
			if a.Silent != "" {
				a = policy.BootstrapAnswer{Name: a.Name, List: f.List, Asked: a.Asked}
			}
		case "a silent host is skipped":
			if a.Silent != "" {
				continue
			}
		case "an earlier attempt counts as the current one":
			if a.Attempt != "" && h == list[0] {
				a.Attempt = f.Attempt
			}
		}
		f.Others = append(f.Others, a)
	}
	switch s.mistake {
	case "any promise counts":
		for i, a := range f.Others {
			if a.Attempt != "" && h == list[0] {
				f.Others[i].PromisedList, f.Others[i].Attempt = f.List, f.Attempt
			}
		}
	case "every host counts as the first one":
		f.First = bootstrapName(h)
		for i := range f.Others {
			f.Others[i].Attempt, f.Others[i].PromisedList = f.Attempt, f.List
		}
	}
	data := policy.Data{State: policy.DataEmpty, Free: 1 << 40, FreeKnown: true}
	if me.data && !strings.HasPrefix(s.mistake, "data is ignored") {
		data.State = policy.DataMember
	}
	return policy.View{
		Self: policy.Self{
			Name: bootstrapName(h), Mode: policy.Manage, Drives: true,
			Etcd: policy.Version{Major: 3, Minor: 6, Patch: 16},
		},
		Data:      data,
		Unit:      policy.Unit{State: policy.UnitInactive, EnvReady: true, SinceStart: policy.Never},
		Health:    policy.Health{State: health.OK, Qualified: true},
		Bootstrap: policy.Bootstrap{Requested: me.requested, Decided: me.decided, Done: me.done}, BootstrapAttempt: f,
	}
}

// next returns all possible next states.
func (s bootstrapScope) next(w bootstrapWorld) []bootstrapWorld {
	var all []bootstrapWorld
	for h := range bootstrapHosts {
		all = append(all, s.queries(w, h)...)
		decided := w
		decided.hosts[h].pending = s.decide(&w, h).note
		all = append(all, decided, s.persist(w, h))
		restarted := w // by a crash or a power loss, which loses everything that is not on disk
		restarted.hosts[h].pending, restarted.hosts[h].answers = policy.BootstrapNote{}, bootstrapHost{}.answers
		restarted.hosts[h].published = 0
		all = append(all, s.requestEvents(w, h)...)
		if w.hosts[h].pending != (policy.BootstrapNote{}) {
			all = append(all, restarted)
		}
		if w.losses < s.losses {
			lost := restarted
			lost.losses++
			lost.hosts[h] = bootstrapHost{list: w.hosts[h].list}
			all = append(all, lost)
		}
		if w.forgets < s.forgets {
			forgot := restarted
			forgot.forgets++
			forgot.hosts[h] = bootstrapHost{list: w.hosts[h].list, data: w.hosts[h].data}
			all = append(all, forgot)
		}
		if w.changes < s.changes {
			changed := restarted
			changed.changes++
			changed.hosts[h].list = 1 - w.hosts[h].list
			all = append(all, changed)
		}
		if s.decide(&w, h).step == policy.StepStartUnit && !w.hosts[h].data {
			started := w
			if s.forgets > 0 || s.requests > 0 {
				started.clusters = w.countClusters() + 1
			}
			started.hosts[h].data = true
			all = append(all, started)
		}
		made := w.clusters > 0 && (s.forgets == 0 && s.requests == 0 || w.countClusters() > 0)
		joins := w.hosts[h].attempt != "" || s.requests > 0 && !w.hosts[h].requested
		if w.hosts[h].requested && w.hosts[h].data || made && joins {
			joined := w
			joined.hosts[h].requested, joined.hosts[h].decided = false, false
			joined.hosts[h].done, joined.hosts[h].data = true, true
			all = append(all, joined)
		}
	}
	return all
}

// countClusters returns 1 if a host has data, and 0 otherwise.
func (w *bootstrapWorld) countClusters() int {
	if slices.ContainsFunc(w.hosts[:], func(h bootstrapHost) bool { return h.data }) {
		return 1
	}
	return 0
}

// queries returns the states after a host has queried another one. Without requests, the first listed host and the
// others query each other; with requests, all listed hosts do.
func (s bootstrapScope) queries(w bootstrapWorld, h int) (all []bootstrapWorld) {
	list := s.lists[w.hosts[h].list]
	for _, g := range list {
		if g == h || s.requests == 0 && h != list[0] && g != list[0] {
			continue
		}
		if s.requests > 0 { // the published answer may be outdated
			asked := w
			asked.hosts[h].answers[g] = w.hosts[g].published
			all = append(all, asked)
			continue
		}
		answer := s.decide(&w, g).answer
		if p := w.hosts[g].pending; s.mistake == "a host answers before its note is on disk" && p.Promise != "" {
			answer.Attempt, answer.PromisedList = p.Promise, answer.List
		}
		to := w
		to.hosts[h].answers[g] = s.number(answer)
		all = append(all, to)
	}
	return all
}

// requestEvents returns the states after a request is created, published, finished or cancelled.
func (s bootstrapScope) requestEvents(w bootstrapWorld, h int) (all []bootstrapWorld) {
	if s.requests == 0 || !slices.Contains(s.lists[w.hosts[h].list], h) {
		return nil
	}
	m := s.decide(&w, h)
	if number := s.number(m.answer); number != w.hosts[h].published {
		next := w
		next.hosts[h].published = number
		was := w.hosts[h].published
		changed := was == 0 || (*s.answers)[was-1].Phase != m.answer.Phase
		if changed && s.mistake != "answers to an earlier request count" {
			next.hosts[h].answers = bootstrapHost{}.answers
		}
		all = append(all, next)
	}
	me := w.hosts[h]
	if fresh := !me.requested && !me.done && !me.data; fresh && w.requests < s.requests {
		requested := w
		requested.requests++
		requested.hosts[h].requested = true
		all = append(all, requested)
	}
	cancels := me.requested && !me.decided && w.cancelled < s.cancels
	if m.step == policy.StepFinishBootstrap || cancels {
		ended := w
		ended.hosts[h].requested, ended.hosts[h].decided = false, false
		ended.hosts[h].pending = policy.BootstrapNote{} // the note belongs to the ended request
		if m.step != policy.StepFinishBootstrap {
			ended.cancelled++
		}
		all = append(all, ended)
	}
	return all
}

// number returns the number of an answer. A new answer gets the next number.
func (s bootstrapScope) number(answer policy.BootstrapAnswer) uint8 {
	i := slices.Index(*s.answers, answer)
	if i < 0 {
		i = len(*s.answers)
		*s.answers = append(*s.answers, answer)
	}
	return uint8(i + 1)
}

// persist records a pending note as hoststate.State does, which refuses a second promise.
func (s bootstrapScope) persist(w bootstrapWorld, h int) bootstrapWorld {
	me := &w.hosts[h]
	note := me.pending
	me.pending = policy.BootstrapNote{}
	free := me.attempt == "" && !me.requested || s.mistake == "a promise is overwritten"
	switch list := fmt.Sprint("list ", me.list); {
	case note.Decide && me.requested:
		me.decided = true
	case note.Start && !me.requested && !me.done:
		me.requested, me.decided = true, true
		if s.forgets == 0 {
			w.clusters++
		}
	case note.Begin && free:
		w.attempts++
		me.promised, me.attempt = list, fmt.Sprint(w.attempts)
	case note.Promise != "" && free:
		me.promised, me.attempt = list, note.Promise
	}
	return w
}

// explore returns the maximum number of clusters over all orders of events, and the number of states. It stops as soon
// as there are two clusters.
func (s bootstrapScope) explore() (most, states int) {
	var first bootstrapWorld
	s.cache = map[hostState]bootstrapDecision{}
	s.answers = new([]policy.BootstrapAnswer)
	for h, list := range s.initial {
		first.hosts[h].list = list
	}
	for _, h := range s.foreign {
		first.hosts[h].data = true
	}
	seen, open := map[bootstrapWorld]bool{first: true}, []bootstrapWorld{first}
	for len(open) > 0 && most < 2 {
		w := open[0]
		open = open[1:]
		most = max(most, w.clusters)
		for _, n := range s.next(w) {
			if !seen[n] {
				seen[n] = true
				open = append(open, n)
			}
		}
	}
	return most, len(seen)
}

// diskLosses returns a scope in which three hosts lose two disks.
func diskLosses() bootstrapScope {
	return bootstrapScope{lists: [2][]int{{0, 1, 2}, {0, 1, 2}}, losses: 2}
}

// twoLists returns a scope with two lists that share a host.
func twoLists() bootstrapScope {
	return bootstrapScope{lists: [2][]int{{0, 2}, {1, 2}}, initial: [bootstrapHosts]int{1: 1}, changes: 2}
}

// lostNotes returns a scope in which quorumd loses its notes while etcd keeps its data. A cluster counts only while a
// host has data.
func lostNotes() bootstrapScope {
	return bootstrapScope{lists: [2][]int{{0, 1, 2}, {0, 1, 2}}, losses: 1, forgets: 2}
}

// foreignData returns a scope in which one host begins with data of another cluster.
func foreignData(host int) bootstrapScope {
	return bootstrapScope{lists: [2][]int{{0, 1, 2}, {0, 1, 2}}, losses: 1, forgets: 1, foreign: []int{host}}
}

// twoHosts returns a scope with two listed hosts and three requests. An operator may cancel one request.
func twoHosts() bootstrapScope {
	return bootstrapScope{lists: [2][]int{{0, 1}, {0, 1}}, requests: 3, cancels: 1}
}

func TestTheListedHostsBootstrapAtMostOneClusterInEveryOrderOfEvents(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]bootstrapScope{
		"two disks are lost": diskLosses(), "two lists": twoLists(), "notes are lost": lostNotes(),
		"the first host has data of another cluster": foreignData(0),
		"the last host has data of another cluster":  foreignData(2),
		"one of three requests is cancelled":         twoHosts(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			most, states := s.explore()
			t.Logf("%d states, %d clusters at most", states, most)
			if most != 1 {
				t.Errorf("%d clusters were created, want 1", most)
			}
		})
	}
}

func TestAMistakeInBootstrappingIsFound(t *testing.T) {
	t.Parallel()
	for mistake, s := range map[string]bootstrapScope{
		"a silent host is skipped": diskLosses(), "an earlier attempt counts as the current one": diskLosses(),
		"a promise is overwritten": diskLosses(), "every host counts as the first one": diskLosses(),
		"a host answers before its note is on disk": diskLosses(), "any promise counts": twoLists(),
		"data is ignored": foreignData(2), "data is ignored when all notes are lost": lostNotes(),
		"a host asks before it publishes its request": twoHosts(), "a decision does not count as a request": twoHosts(),
		"a cluster does not count as a request":              twoHosts(),
		"the first listed host does not wait for the others": twoHosts(),
		"a host that does not answer a request is skipped":   twoHosts(),
		"answers to an earlier request count":                twoHosts(),
	} {
		t.Run(mistake, func(t *testing.T) {
			t.Parallel()
			s.mistake = mistake
			most, states := s.explore()
			t.Logf("%d states", states)
			if most < 2 {
				t.Errorf("%d clusters were created: the mistake was not found", most)
			}
		})
	}
}
