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

// bootstrapHosts is the number of hosts in the small worlds in which a cluster is bootstrapped automatically.
const bootstrapHosts = 3

// founder is one of these hosts.
type founder struct {
	list      int // of its configuration
	promised  string
	attempt   string
	requested bool                  // it creates a cluster, or asks whether it may
	decided   bool                  // it bootstraps one
	published uint8                 // the number of its answer that other hosts read; only if requests are explored
	done      bool                  // it has belonged to a cluster
	data      bool                  // its etcd's directory has data of a cluster
	answers   [bootstrapHosts]uint8 // numbers of answers; 0: it has not been asked
	pending   policy.BootstrapNote  // decided, and not on disk yet
}

// bootstrapWorld is one state. The answers that a host has received may be of any age, which is worse than the real
// bounded window.
type bootstrapWorld struct {
	hosts            [bootstrapHosts]founder
	attempts, losses int
	changes, forgets int
	asked, withdrawn int
	clusters         int
}

// bootstrapScope bounds the events and may seed a mistake.
type bootstrapScope struct {
	lists           [2][]int // of hosts
	begin           [bootstrapHosts]int
	losses, changes int
	forgets         int   // how often quorumd's notes are lost, as in a reinstallation; etcd's data stays
	before          []int // hosts that return with data of another cluster, which no host joins
	requests        int   // how often an operator requests a cluster; the list bootstraps none automatically then
	withdraws       int   // and how often a request is cancelled
	mistake         string
	words           *[]policy.BootstrapAnswer // all answers so far, by number
	known           map[standing]bootstrapMind
}

// standing is one host in one state: its answers and decisions depend on nothing else.
type standing struct {
	host int
	founder
}

type bootstrapMind struct {
	word policy.BootstrapAnswer
	note policy.BootstrapNote
	step policy.StepKind
}

// mind returns what the policy makes a host answer and note.
func (s bootstrapScope) mind(w *bootstrapWorld, h int) bootstrapMind {
	key := standing{h, w.hosts[h]}
	key.pending = policy.BootstrapNote{}
	m, known := s.known[key]
	if !known {
		v := s.view(w, h)
		m.word = policy.BootstrapAnswerOf(v)
		if s.mistake == "a promise is overwritten" && v.BootstrapAttempt.First != v.Self.Name {
			v.BootstrapAttempt.PromisedList, v.BootstrapAttempt.Attempt = "", ""
		}
		d := policy.Decide(v)
		m.note, m.step = d.Notes.BootstrapAttempt, d.Step.Kind
		s.known[key] = m
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
			a = (*s.words)[number-1]
		}
		if me.published > 0 {
			a.Asked = (*s.words)[me.published-1].Phase
		}
		switch s.mistake {
		case "it asks before it publishes its request":
			a.Asked = policy.BootstrapAsking
		case "a decision does not count as a request":
			if a.Phase == policy.BootstrapDecided {
				a.Phase, a.Past = policy.BootstrapNone, ""
			}
		case "a cluster does not count as a request":
			if a.Phase == policy.BootstrapCluster {
				a.Phase, a.Past = policy.BootstrapNone, ""
			}
		case "the first of the list waits for no other host":
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
	case "every host is the first":
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

// next returns all states that may follow.
func (s bootstrapScope) next(w bootstrapWorld) []bootstrapWorld {
	var all []bootstrapWorld
	for h := range bootstrapHosts {
		all = append(all, s.asks(w, h)...)
		decided := w
		decided.hosts[h].pending = s.mind(&w, h).note
		all = append(all, decided, s.land(w, h))
		restarted := w // also after a loss of power: whatever was not on disk is gone
		restarted.hosts[h].pending, restarted.hosts[h].answers = policy.BootstrapNote{}, founder{}.answers
		restarted.hosts[h].published = 0
		all = append(all, s.requested(w, h)...)
		if w.hosts[h].pending != (policy.BootstrapNote{}) {
			all = append(all, restarted)
		}
		if w.losses < s.losses {
			lost := restarted
			lost.losses++
			lost.hosts[h] = founder{list: w.hosts[h].list}
			all = append(all, lost)
		}
		if w.forgets < s.forgets {
			forgot := restarted
			forgot.forgets++
			forgot.hosts[h] = founder{list: w.hosts[h].list, data: w.hosts[h].data}
			all = append(all, forgot)
		}
		if w.changes < s.changes {
			changed := restarted
			changed.changes++
			changed.hosts[h].list = 1 - w.hosts[h].list
			all = append(all, changed)
		}
		if s.mind(&w, h).step == policy.StepStartUnit && !w.hosts[h].data {
			started := w
			if s.forgets > 0 || s.requests > 0 {
				started.clusters = w.standing() + 1
			}
			started.hosts[h].data = true
			all = append(all, started)
		}
		made := w.clusters > 0 && (s.forgets == 0 && s.requests == 0 || w.standing() > 0)
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

// standing returns 1 if there is a cluster: a host has data.
func (w *bootstrapWorld) standing() int {
	if slices.ContainsFunc(w.hosts[:], func(h founder) bool { return h.data }) {
		return 1
	}
	return 0
}

// asks has a host ask other hosts: the first host asks all of them, the others ask the first.
func (s bootstrapScope) asks(w bootstrapWorld, h int) (all []bootstrapWorld) {
	list := s.lists[w.hosts[h].list]
	for _, g := range list {
		if g == h || s.requests == 0 && h != list[0] && g != list[0] {
			continue
		}
		if s.requests > 0 { // its published answer may be outdated
			asked := w
			asked.hosts[h].answers[g] = w.hosts[g].published
			all = append(all, asked)
			continue
		}
		word := s.mind(&w, g).word
		if p := w.hosts[g].pending; s.mistake == "it answers before its note is on disk" && p.Promise != "" {
			word.Attempt, word.PromisedList = p.Promise, word.List
		}
		to := w
		to.hosts[h].answers[g] = s.number(word)
		all = append(all, to)
	}
	return all
}

// requested returns what follows an operator's request: it is created, published and ended.
func (s bootstrapScope) requested(w bootstrapWorld, h int) (all []bootstrapWorld) {
	if s.requests == 0 || !slices.Contains(s.lists[w.hosts[h].list], h) {
		return nil
	}
	m := s.mind(&w, h)
	if number := s.number(m.word); number != w.hosts[h].published {
		next := w
		next.hosts[h].published = number
		was := w.hosts[h].published
		changed := was == 0 || (*s.words)[was-1].Phase != m.word.Phase
		if changed && s.mistake != "what was answered to an earlier request counts" {
			next.hosts[h].answers = founder{}.answers
		}
		all = append(all, next)
	}
	me := w.hosts[h]
	if fresh := !me.requested && !me.done && !me.data; fresh && w.asked < s.requests {
		requested := w
		requested.asked++
		requested.hosts[h].requested = true
		all = append(all, requested)
	}
	withdraws := me.requested && !me.decided && w.withdrawn < s.withdraws
	if m.step == policy.StepFinishBootstrap || withdraws {
		ended := w
		ended.hosts[h].requested, ended.hosts[h].decided = false, false
		ended.hosts[h].pending = policy.BootstrapNote{} // it belongs to the request that has ended
		if m.step != policy.StepFinishBootstrap {
			ended.withdrawn++
		}
		all = append(all, ended)
	}
	return all
}

func (s bootstrapScope) number(word policy.BootstrapAnswer) uint8 {
	i := slices.Index(*s.words, word)
	if i < 0 {
		i = len(*s.words)
		*s.words = append(*s.words, word)
	}
	return uint8(i + 1)
}

// land records a decision as hoststate.State does: a second, different promise is refused.
func (s bootstrapScope) land(w bootstrapWorld, h int) bootstrapWorld {
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

// explore returns the most clusters that any order of events creates, and the number of states.
func (s bootstrapScope) explore() (most, moments int) {
	var first bootstrapWorld
	s.known = map[standing]bootstrapMind{}
	s.words = new([]policy.BootstrapAnswer)
	for h, list := range s.begin {
		first.hosts[h].list = list
	}
	for _, h := range s.before {
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

// lossy has three hosts and loses two disks; torn has two lists that share a host.
func lossy() bootstrapScope {
	return bootstrapScope{lists: [2][]int{{0, 1, 2}, {0, 1, 2}}, losses: 2}
}

func torn() bootstrapScope {
	return bootstrapScope{lists: [2][]int{{0, 2}, {1, 2}}, begin: [bootstrapHosts]int{1: 1}, changes: 2}
}

// returning has hosts on which quorumd has lost its notes and etcd still has its data; in earlier, one returns from
// another cluster. A cluster without any data left does not count.
func returning() bootstrapScope {
	return bootstrapScope{lists: [2][]int{{0, 1, 2}, {0, 1, 2}}, losses: 1, forgets: 2}
}

func earlier(host int) bootstrapScope {
	return bootstrapScope{lists: [2][]int{{0, 1, 2}, {0, 1, 2}}, losses: 1, forgets: 1, before: []int{host}}
}

// twoHosts has two listed hosts and three requests; one request may be cancelled.
func twoHosts() bootstrapScope {
	return bootstrapScope{lists: [2][]int{{0, 1}, {0, 1}}, requests: 3, withdraws: 1}
}

func TestTheListedHostsBootstrapAtMostOneClusterInEveryOrderOfEvents(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]bootstrapScope{
		"disks are lost": lossy(), "two lists": torn(), "hosts return with data": returning(),
		"the first one has data of another cluster": earlier(0), "the last one has data of another cluster": earlier(2),
		"one of three requests is cancelled": twoHosts(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			most, moments := s.explore()
			t.Logf("%d states, %d clusters at most", moments, most)
			if most != 1 {
				t.Errorf("%d clusters were made, not one", most)
			}
		})
	}
}

func TestAMistakeInBootstrappingIsFound(t *testing.T) {
	t.Parallel()
	for mistake, s := range map[string]bootstrapScope{
		"a silent host is skipped": lossy(), "an earlier attempt counts as the current one": lossy(),
		"a promise is overwritten": lossy(), "every host is the first": lossy(),
		"it answers before its note is on disk": lossy(), "any promise counts": torn(),
		"data is ignored": earlier(2), "data is ignored, where all notes are lost": returning(),
		"it asks before it publishes its request": twoHosts(), "a decision does not count as a request": twoHosts(),
		"a cluster does not count as a request":            twoHosts(),
		"the first of the list waits for no other host":    twoHosts(),
		"a host that does not answer a request is skipped": twoHosts(),
		"what was answered to an earlier request counts":   twoHosts(),
	} {
		t.Run(mistake, func(t *testing.T) {
			t.Parallel()
			s.mistake = mistake
			most, moments := s.explore()
			t.Logf("%d states", moments)
			if most < 2 {
				t.Errorf("%d clusters were made: the mistake is not found", most)
			}
		})
	}
}
