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

// falseClaim is a false claim about etcd, which real etcd must refute.
type falseClaim struct {
	name  string
	apply func(c *claims)
}

// falseClaims returns false claims about everything that is compared. Some seem plausible. Others were claims of the
// model before it was compared with etcd.
func falseClaims() []falseClaim {
	answers := func(change func(w *world, o operation, intact answer) answer) func(c *claims) {
		return func(c *claims) {
			intact := c.refuses
			c.refuses = func(w *world, o operation) answer { return change(w, o, intact(w, o)) }
		}
	}
	return []falseClaim{
		{"a learner is added with one of three voters down", answers(func(_ *world, o operation, intact answer) answer {
			if o.kind == opAdd && intact == unhealthyCluster {
				return accepted
			}
			return intact
		})},
		{"a host is added twice", answers(func(_ *world, _ operation, intact answer) answer {
			if intact == urlExists {
				return accepted
			}
			return intact
		})},
		{"a second learner is added", answers(func(_ *world, _ operation, intact answer) answer {
			if intact == tooManyLearners {
				return accepted
			}
			return intact
		})},
		{"a learner that has never started is promoted", func(c *claims) {
			intact := *c
			c.refuses = func(w *world, o operation) answer {
				if a := intact.refuses(w, o); a != notInSync {
					return a
				}
				return accepted
			}
			c.mayRefuse = func(w *world, o operation) answerSet { return intact.mayRefuse(w, o) &^ setOf(notInSync) }
		}},
		{"a learner that does not run is never promoted", answers(func(w *world, o operation, intact answer) answer {
			if (o.kind == opPromote || o.kind == opLatePromote) && intact == accepted && !w.serves(int(o.host)) {
				return notInSync
			}
			return intact
		})},
		{"only a learner that has started is removed", answers(func(w *world, o operation, intact answer) answer {
			if o.kind == opRemove && w.hosts[o.host].list == learner && w.hosts[o.host].named == 0 {
				return unhealthyCluster
			}
			return intact
		})},
		{"a voter is promoted again", answers(func(_ *world, _ operation, intact answer) answer {
			if intact == notLearner {
				return accepted
			}
			return intact
		})},
		{"a learner counts towards the quorum", func(c *claims) {
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
		{"two of three voters are no quorum", func(c *claims) {
			c.quorum = func(w *world) bool {
				voters, running := w.votes()
				return w.quorum() && (voters < 3 || running == voters)
			}
		}},
		{"an isolated voter does not serve, even as the only voter", func(c *claims) {
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
			"a voter is removed even if that costs the quorum",
			answers(func(w *world, o operation, intact answer) answer {
				if o.kind == opRemove && w.hosts[o.host].list == voter {
					return accepted
				}
				return intact
			}),
		},
		{"an isolated learner looks dead", func(c *claims) { c.looksLive = c.serves }},
		{"an isolated learner follows", func(c *claims) { c.serves = c.looksLive }},
		{"a removed member keeps running", func(c *claims) {
			c.afterStart = func(w *world, i int, how uint8) host {
				if w.hosts[i].data == old {
					return w.hosts[i]
				}
				return modelClaims().afterStart(w, i, how)
			}
		}},
		{"an etcd creates its data only when it is ready", func(c *claims) {
			c.afterStart = func(w *world, i int, how uint8) host {
				h := modelClaims().afterStart(w, i, how)
				if w.hosts[i].data == empty && h.data == current && h.unit == starting {
					h.data = empty
				}
				return h
			}
		}},
		{"an etcd joins with any list that it receives", func(c *claims) {
			c.afterStart = func(w *world, i int, how uint8) host {
				h := modelClaims().afterStart(w, i, how)
				if h.data == remains && w.hosts[i].isolated == 0 {
					h.data, h.unit = current, starting
				}
				return h
			}
		}},
	}
}

// pairsShowing returns the pairs in which a false claim differs from the model.
func (l falseClaim) pairsShowing(all map[pair]int) map[pair]bool {
	intact, altered := modelClaims(), modelClaims()
	l.apply(&altered)
	shows := map[pair]bool{}
	for q := range all {
		if q.isPreparation() {
			continue
		}
		w := q.at.world(maxHosts)
		next := q.after()
		after := next.world(maxHosts)
		differs := intact.quorum(&after) != altered.quorum(&after)
		for i := range after.n {
			h := &after.hosts[i]
			differs = differs || (h.unit == active && h.data == current && h.list != unlisted &&
				(intact.serves(&after, i) != altered.serves(&after, i) ||
					intact.looksLive(&after, i) != altered.looksLive(&after, i)))
		}
		switch q.kind {
		case opAdd, opPromote, opRemove, opLateAdd, opLatePromote, opLateRemove:
			differs = differs || intact.refuses(&w, q.operation) != altered.refuses(&w, q.operation)
		case opUp:
			differs = differs || intact.afterStart(&w, int(q.host), q.arg) != altered.afterStart(&w, int(q.host), q.arg)
		}
		if differs {
			shows[q.reduced()] = true
		}
	}
	return shows
}

func TestEveryFalseClaimAboutEtcdIsReported(t *testing.T) {
	t.Parallel()
	pairs, firsts := exploredPairs(t)
	slots := make(chan struct{}, 4)
	for _, l := range falseClaims() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			p := newPlan(pairs, firsts)
			shows := l.pairsShowing(pairs)
			p.left, p.maxDifferences, p.patience = maps.Clone(shows), 1, shortPatience
			if len(shows) == 0 {
				t.Fatal("no pair shows the difference")
			}
			c := modelClaims()
			l.apply(&c)
			began := time.Now()
			p.work(t, testbed.DefaultVersion, c, began.Add(*bound))
			if len(p.differences) == 0 {
				t.Fatalf("etcd did not differ in %d steps", p.steps)
			}
			for q := range p.differsIn {
				if !shows[q] {
					t.Errorf("another difference was reported: %s", p.differences[0])
				}
			}
			shown, _, _ := strings.Cut(p.differences[0], logs)
			t.Logf("after %d steps and %.1f s: %s", p.steps, time.Since(began).Seconds(), shown)
		})
	}
}
