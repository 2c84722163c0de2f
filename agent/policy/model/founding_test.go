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

// foundingHosts is how many hosts the small worlds have in which a cluster is made by itself.
const foundingHosts = 3

// founder is one of them.
type founder struct {
	list      int // of its configuration
	promised  string
	attempt   string
	requested bool                 // it creates a cluster, or asks whether it may
	decided   bool                 // it makes one
	published uint8                // the number of its word that others read; only if requests are explored
	done      bool                 // it has belonged to one
	data      bool                 // there is data of one in its etcd's directory
	heard     [foundingHosts]uint8 // numbers of words; 0: it has not been asked
	pending   policy.BootstrapNote // decided, and not on the disk yet
}

// foundingWorld is one moment. What a host has heard stays as old as it may: that is worse than the bounded window.
type foundingWorld struct {
	hosts            [foundingHosts]founder
	attempts, losses int
	changes, forgets int
	asked, withdrawn int
	clusters         int
}

// foundingScope bounds what happens, and has a mistake to be found.
type foundingScope struct {
	lists           [2][]int // of hosts
	begin           [foundingHosts]int
	losses, changes int
	forgets         int   // times that what quorumd has noted is lost, as when it is installed anew; etcd's data stay
	before          []int // hosts that return with data of another cluster, which nobody joins
	requests        int   // times that an operator requests a cluster; the list makes none by itself then
	withdraws       int   // and that a request is withdrawn
	mistake         string
	words           *[]policy.BootstrapAnswer // that were ever said, by number
	known           map[standing]foundingMind
}

// standing is one host at one moment, of which nothing else depends what it says and decides.
type standing struct {
	host int
	founder
}

type foundingMind struct {
	word policy.BootstrapAnswer
	note policy.BootstrapNote
	step policy.StepKind
}

// mind returns what the policy has a host say and note.
func (s foundingScope) mind(w *foundingWorld, h int) foundingMind {
	key := standing{h, w.hosts[h]}
	key.pending = policy.BootstrapNote{}
	m, known := s.known[key]
	if !known {
		v := s.view(w, h)
		m.word = policy.BootstrapAnswerOf(v)
		if s.mistake == "a promise is written over" && v.BootstrapAttempt.First != v.Self.Name {
			v.BootstrapAttempt.PromisedList, v.BootstrapAttempt.Attempt = "", ""
		}
		d := policy.Decide(v)
		m.note, m.step = d.Notes.BootstrapAttempt, d.Step.Kind
		s.known[key] = m
	}
	return m
}

func foundingName(host int) string { return string(rune('a' + host)) }

func (s foundingScope) view(w *foundingWorld, h int) policy.View {
	me := w.hosts[h]
	list := s.lists[me.list]
	f := policy.BootstrapAttempt{
		List: fmt.Sprint("list ", me.list), First: foundingName(list[0]),
		PromisedList: me.promised, Attempt: me.attempt, OnRequest: s.requests > 0,
	}
	for _, g := range list {
		if g == h {
			continue
		}
		a := policy.BootstrapAnswer{Name: foundingName(g), Silent: "not asked"}
		if number := me.heard[g]; number > 0 {
			a = (*s.words)[number-1]
		}
		if me.published > 0 {
			a.Asked = (*s.words)[me.published-1].Phase
		}
		switch s.mistake {
		case "it asks before it publishes that it does":
			a.Asked = policy.FoundingAsks
		case "a decision is no request":
			if a.Phase == policy.FoundingDecided {
				a.Phase, a.Past = policy.FoundingNone, ""
			}
		case "a cluster is no request":
			if a.Phase == policy.FoundingCluster {
				a.Phase, a.Past = policy.FoundingNone, ""
			}
		case "the first of the list waits for no other":
			if a.Phase == policy.FoundingAsks && a.Name > foundingName(h) {
				a.Phase, a.Past = policy.FoundingNone, ""
			}
		case "one who does not answer a request is not waited for":
			if a.Silent != "" {
				a = policy.BootstrapAnswer{Name: a.Name, List: f.List, Asked: a.Asked}
			}
		case "one who is silent is not waited for":
			if a.Silent != "" {
				continue
			}
		case "an earlier attempt is as good":
			if a.Attempt != "" && h == list[0] {
				a.Attempt = f.Attempt
			}
		}
		f.Others = append(f.Others, a)
	}
	switch s.mistake {
	case "any promise will do":
		for i, a := range f.Others {
			if a.Attempt != "" && h == list[0] {
				f.Others[i].PromisedList, f.Others[i].Attempt = f.List, f.Attempt
			}
		}
	case "everybody is the first":
		f.First = foundingName(h)
		for i := range f.Others {
			f.Others[i].Attempt, f.Others[i].PromisedList = f.Attempt, f.List
		}
	}
	data := policy.Data{State: policy.DataEmpty, Free: 1 << 40, FreeKnown: true}
	if me.data && !strings.HasPrefix(s.mistake, "data are not looked at") {
		data.State = policy.DataMember
	}
	return policy.View{
		Self: policy.Self{
			Name: foundingName(h), Mode: policy.Manage, Drives: true,
			Etcd: policy.Version{Major: 3, Minor: 6, Patch: 16},
		},
		Data:      data,
		Unit:      policy.Unit{State: policy.UnitInactive, EnvReady: true, SinceStart: policy.Never},
		Health:    policy.Health{State: health.OK, Qualified: true},
		Bootstrap: policy.Bootstrap{Requested: me.requested, Decided: me.decided, Done: me.done}, BootstrapAttempt: f,
	}
}

// next returns all moments that may follow.
func (s foundingScope) next(w foundingWorld) []foundingWorld {
	var all []foundingWorld
	for h := range foundingHosts {
		all = append(all, s.heard(w, h)...)
		decided := w
		decided.hosts[h].pending = s.mind(&w, h).note
		all = append(all, decided, s.land(w, h))
		restarted := w // also after a loss of power: what was not on the disk is gone
		restarted.hosts[h].pending, restarted.hosts[h].heard = policy.BootstrapNote{}, founder{}.heard
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
func (w *foundingWorld) standing() int {
	if slices.ContainsFunc(w.hosts[:], func(h founder) bool { return h.data }) {
		return 1
	}
	return 0
}

// heard has a host ask another: the first asks all, and the others the first.
func (s foundingScope) heard(w foundingWorld, h int) (all []foundingWorld) {
	list := s.lists[w.hosts[h].list]
	for _, g := range list {
		if g == h || s.requests == 0 && h != list[0] && g != list[0] {
			continue
		}
		if s.requests > 0 { // what it has published may be of a while ago
			asked := w
			asked.hosts[h].heard[g] = w.hosts[g].published
			all = append(all, asked)
			continue
		}
		word := s.mind(&w, g).word
		if p := w.hosts[g].pending; s.mistake == "it is told before it is on the disk" && p.Promise != "" {
			word.Attempt, word.PromisedList = p.Promise, word.List
		}
		told := w
		told.hosts[h].heard[g] = s.number(word)
		all = append(all, told)
	}
	return all
}

// requested returns what follows an operator's request: it is made, published and ended.
func (s foundingScope) requested(w foundingWorld, h int) (all []foundingWorld) {
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
			next.hosts[h].heard = founder{}.heard
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
		ended.hosts[h].pending = policy.BootstrapNote{} // it is of the request that has ended
		if m.step != policy.StepFinishBootstrap {
			ended.withdrawn++
		}
		all = append(all, ended)
	}
	return all
}

func (s foundingScope) number(word policy.BootstrapAnswer) uint8 {
	i := slices.Index(*s.words, word)
	if i < 0 {
		i = len(*s.words)
		*s.words = append(*s.words, word)
	}
	return uint8(i + 1)
}

// land writes what was decided, as local.State does: another promise is refused.
func (s foundingScope) land(w foundingWorld, h int) foundingWorld {
	me := &w.hosts[h]
	note := me.pending
	me.pending = policy.BootstrapNote{}
	free := me.attempt == "" && !me.requested || s.mistake == "a promise is written over"
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

// explore returns the most clusters that were ever made in an order of events, and how many moments there are.
func (s foundingScope) explore() (most, moments int) {
	var first foundingWorld
	s.known = map[standing]foundingMind{}
	s.words = new([]policy.BootstrapAnswer)
	for h, list := range s.begin {
		first.hosts[h].list = list
	}
	for _, h := range s.before {
		first.hosts[h].data = true
	}
	seen, open := map[foundingWorld]bool{first: true}, []foundingWorld{first}
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

// lossy has three hosts, and two disks are lost; torn has two lists that share a host.
func lossy() foundingScope {
	return foundingScope{lists: [2][]int{{0, 1, 2}, {0, 1, 2}}, losses: 2}
}

func torn() foundingScope {
	return foundingScope{lists: [2][]int{{0, 2}, {1, 2}}, begin: [foundingHosts]int{1: 1}, changes: 2}
}

// returning has hosts of which quorumd has forgotten all, and etcd has not; in earlier, one comes from another cluster.
// A cluster of which no data are left is none there.
func returning() foundingScope {
	return foundingScope{lists: [2][]int{{0, 1, 2}, {0, 1, 2}}, losses: 1, forgets: 2}
}

func earlier(host int) foundingScope {
	return foundingScope{lists: [2][]int{{0, 1, 2}, {0, 1, 2}}, losses: 1, forgets: 1, before: []int{host}}
}

// twoHosts has two listed hosts and three requests; one request may be withdrawn.
func twoHosts() foundingScope {
	return foundingScope{lists: [2][]int{{0, 1}, {0, 1}}, requests: 3, withdraws: 1}
}

func TestTheListedHostsMakeOneClusterAtMostInEveryOrderOfEvents(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]foundingScope{
		"disks are lost": lossy(), "two lists": torn(), "hosts return with data": returning(),
		"the first one has data of another cluster": earlier(0), "the last one has": earlier(2),
		"one of three requests is withdrawn": twoHosts(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			most, moments := s.explore()
			t.Logf("%d moments, %d clusters at most", moments, most)
			if most != 1 {
				t.Errorf("%d clusters were made, not one", most)
			}
		})
	}
}

func TestAMistakeInMakingAClusterIsFound(t *testing.T) {
	t.Parallel()
	for mistake, s := range map[string]foundingScope{
		"one who is silent is not waited for": lossy(), "an earlier attempt is as good": lossy(),
		"a promise is written over": lossy(), "everybody is the first": lossy(),
		"it is told before it is on the disk": lossy(), "any promise will do": torn(),
		"data are not looked at": earlier(2), "data are not looked at, where all notes are lost": returning(),
		"it asks before it publishes that it does": twoHosts(), "a decision is no request": twoHosts(),
		"a cluster is no request": twoHosts(), "the first of the list waits for no other": twoHosts(),
		"one who does not answer a request is not waited for": twoHosts(),
		"what was answered to an earlier request counts":      twoHosts(),
	} {
		t.Run(mistake, func(t *testing.T) {
			t.Parallel()
			s.mistake = mistake
			most, moments := s.explore()
			t.Logf("%d moments", moments)
			if most < 2 {
				t.Errorf("%d clusters were made: the mistake is not found", most)
			}
		})
	}
}
