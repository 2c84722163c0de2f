// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build realetcd

package model

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// lie is a false claim about etcd. Real etcd must refute it.
type lie struct {
	name string
	tell func(c *claims)
}

// falseClaims returns false claims about everything that is compared. Some are what one would expect of etcd; others
// are what this model claimed before it was compared.
func falseClaims() []lie {
	answers := func(change func(w *world, o operation, honest answer) answer) func(c *claims) {
		return func(c *claims) {
			honest := c.refuses
			c.refuses = func(w *world, o operation) answer { return change(w, o, honest(w, o)) }
		}
	}
	return []lie{
		{"a learner is added with one of three voters down", answers(func(_ *world, o operation, honest answer) answer {
			if o.kind == opAdd && honest == unhealthyCluster {
				return accepted
			}
			return honest
		})},
		{"a host is added twice", answers(func(_ *world, _ operation, honest answer) answer {
			if honest == urlExists {
				return accepted
			}
			return honest
		})},
		{"a second learner is added", answers(func(_ *world, _ operation, honest answer) answer {
			if honest == tooManyLearners {
				return accepted
			}
			return honest
		})},
		{"a learner that has never started is promoted", func(c *claims) {
			honest := *c
			c.refuses = func(w *world, o operation) answer {
				if a := honest.refuses(w, o); a != notInSync {
					return a
				}
				return accepted
			}
			c.may = func(w *world, o operation) answerSet { return honest.may(w, o) &^ setOf(notInSync) }
		}},
		{"a learner that does not run is never promoted", answers(func(w *world, o operation, honest answer) answer {
			if (o.kind == opPromote || o.kind == opLatePromote) && honest == accepted && !w.serves(int(o.host)) {
				return notInSync
			}
			return honest
		})},
		{"only a learner that has started is removed", answers(func(w *world, o operation, honest answer) answer {
			if o.kind == opRemove && w.hosts[o.host].list == learner && w.hosts[o.host].named == 0 {
				return unhealthyCluster
			}
			return honest
		})},
		{"a voter is promoted again", answers(func(_ *world, _ operation, honest answer) answer {
			if honest == notLearner {
				return accepted
			}
			return honest
		})},
		{"a learner counts for the quorum", func(c *claims) {
			c.quorum = func(w *world) bool {
				members, running := 0, 0
				for i := range w.n {
					if w.hosts[i].list != unlisted {
						members++
						running += int(bit(w.runs(i)))
					}
				}
				return members > 0 && running >= majority(members)
			}
		}},
		{"two of three are no quorum", func(c *claims) {
			c.quorum = func(w *world) bool {
				voters, running := w.votes()
				return w.quorum() && (voters < 3 || running == voters)
			}
		}},
		{"a voter that is cut off serves no one, even as the only voter", func(c *claims) {
			c.quorum = func(w *world) bool {
				for i := range w.n {
					if w.alone(i) && w.hosts[i].isolated != 0 {
						return false
					}
				}
				return w.quorum()
			}
		}},
		{
			"a voter is removed whatever that does to the quorum",
			answers(func(w *world, o operation, honest answer) answer {
				if o.kind == opRemove && w.hosts[o.host].list == voter {
					return accepted
				}
				return honest
			}),
		},
		{"a learner that is cut off looks dead", func(c *claims) { c.looks = c.serves }},
		{"a learner that is cut off follows", func(c *claims) { c.serves = c.looks }},
		{"a removed member keeps running", func(c *claims) {
			c.up = func(w *world, i int, how uint8) host {
				if w.hosts[i].data == old {
					return w.hosts[i]
				}
				return ofTheModel().up(w, i, how)
			}
		}},
		{"an etcd creates its data only once it is ready", func(c *claims) {
			c.up = func(w *world, i int, how uint8) host {
				h := ofTheModel().up(w, i, how)
				if w.hosts[i].data == empty && h.data == current && h.unit == starting {
					h.data = empty
				}
				return h
			}
		}},
		{"an etcd joins whatever list it receives", func(c *claims) {
			c.up = func(w *world, i int, how uint8) host {
				h := ofTheModel().up(w, i, how)
				if h.data == remains && w.hosts[i].isolated == 0 {
					h.data, h.unit = current, starting
				}
				return h
			}
		}},
	}
}

// showing returns the pairs in which a lie differs from the model.
func (l lie) showing(met map[pair]int) map[pair]bool {
	honest, lying := ofTheModel(), ofTheModel()
	l.tell(&lying)
	shows := map[pair]bool{}
	for q := range met {
		if q.free() {
			continue
		}
		w := q.at.world(maxHosts)
		next := q.after()
		after := next.world(maxHosts)
		differs := honest.quorum(&after) != lying.quorum(&after)
		for i := range after.n {
			h := &after.hosts[i]
			differs = differs || (h.unit == active && h.data == current && h.list != unlisted &&
				(honest.serves(&after, i) != lying.serves(&after, i) ||
					honest.looks(&after, i) != lying.looks(&after, i)))
		}
		switch q.kind {
		case opAdd, opPromote, opRemove, opLateAdd, opLatePromote, opLateRemove:
			differs = differs || honest.refuses(&w, q.operation) != lying.refuses(&w, q.operation)
		case opUp:
			differs = differs || honest.up(&w, int(q.host), q.arg) != lying.up(&w, int(q.host), q.arg)
		}
		if differs {
			shows[q.essence()] = true
		}
	}
	return shows
}

func TestEveryLieAboutEtcdIsReported(t *testing.T) {
	t.Parallel()
	pairs, firsts := met(t)
	turns := make(chan struct{}, 4)
	for _, l := range falseClaims() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			turns <- struct{}{}
			defer func() { <-turns }()
			p := newPlan(pairs, firsts)
			shows := l.showing(pairs)
			p.left, p.enough, p.patience = maps.Clone(shows), 1, shortPatience
			if len(shows) == 0 {
				t.Fatal("no pair shows it")
			}
			c := ofTheModel()
			l.tell(&c)
			began := time.Now()
			p.work(t, testbed.DefaultVersion, c, began.Add(*bound))
			if len(p.differ) == 0 {
				t.Fatalf("etcd did not differ in %d steps", p.steps)
			}
			for q := range p.at {
				if !shows[q] {
					t.Errorf("a difference other than the lie was reported: %s", p.differ[0])
				}
			}
			shown, _, _ := strings.Cut(p.differ[0], logs)
			t.Logf("after %d steps and %.1f s: %s", p.steps, time.Since(began).Seconds(), shown)
		})
	}
}
