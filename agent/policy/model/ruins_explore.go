// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

// ruinRules are what a mistake changes.
type ruinRules struct {
	view  func(v *policy.View)                    // what an agent sees
	say   func(v policy.View, d *policy.Decision) // what comes of that
	tell  func(told *policy.Remains)              // what a host tells people of itself
	shown func(shown *policy.PlanShown)           // what a host compares when it is shown a plan
	blind bool                                    // a copy is made whatever the log says by then
	safe  bool                                    // nobody asks whether it all ends well
}

// ruinMachine explores a scope under rules.
type ruinMachine struct {
	Ruin
	ruinRules
	cache  map[outlook]policy.Decision
	rests  map[ruins]bool // from which everybody comes to rest as a voter
	result Result
}

func newRuinMachine(sc Ruin, r ruinRules) *ruinMachine {
	return &ruinMachine{
		Ruin: sc, ruinRules: r, cache: map[outlook]policy.Decision{}, rests: map[ruins]bool{},
		result: Result{
			Scenario: Scenario{Name: sc.Name}, Steps: map[policy.StepKind]bool{},
			Reasons: map[policy.ReasonCode]bool{}, Phases: map[Phase]bool{},
		},
	}
}

// decide asks the real policy, once for every outlook.
func (m *ruinMachine) decide(o *outlook) policy.Decision {
	if d, ok := m.cache[*o]; ok {
		return d
	}
	v := o.view()
	if m.view != nil {
		m.view(&v)
	}
	d := policy.Decide(v)
	if m.say != nil {
		m.say(v, &d)
	}
	m.result.Steps[d.Step.Kind] = true
	m.result.Reasons[d.Step.Outcome] = true
	for _, r := range d.Reasons {
		m.result.Reasons[r.Code] = true
	}
	m.cache[*o] = d
	return d
}

// from is how a world was found.
type from struct {
	world ruins
	what  string
	depth int
}

// ExploreRuin walks through all that may become of a cluster that has lost its majority. It ends with the fixpoint,
// with the first breach, at so many states if most is not 0, or with its context.
func ExploreRuin(ctx context.Context, sc Ruin, most int) Result {
	return newRuinMachine(sc, ruinRules{}).explore(ctx, most)
}

func (m *ruinMachine) explore(ctx context.Context, most int) Result {
	began, first := time.Now(), m.first()
	m.settle(&first)
	found := map[ruins]from{first: {}}
	r := &m.result
	done := func() Result {
		r.States, r.Took = len(found), time.Since(began)
		return *r
	}
	for list := []ruins{first}; len(list) > 0; list = list[1:] {
		w := list[0]
		if ctx.Err() != nil || most > 0 && len(found) >= most {
			return done()
		}
		r.Depth = found[w].depth
		if !m.safe && !m.comesToRest(&w) {
			r.Breach = m.breach(found, w, "", neverBack)
			return done()
		}
		for _, n := range m.follow(&w) {
			r.Transitions++
			if n.found != 0 {
				r.Breach = m.breach(found, w, fmt.Sprintf("%s\n%s", n.what, m.text(&n.world)), n.found)
				return done()
			}
			if _, known := found[n.world]; !known {
				found[n.world] = from{w, n.what, found[w].depth + 1}
				list = append(list, n.world)
			}
		}
	}
	r.Complete = true
	return done()
}

// breach tells how it came to one.
func (m *ruinMachine) breach(found map[ruins]from, at ruins, last string, b ruinBreach) *Breach {
	lines := []string{last}
	for {
		f := found[at]
		lines = append(lines, fmt.Sprintf("%s\n%s", f.what, m.text(&at)))
		if f.depth == 0 {
			break
		}
		at = f.world
	}
	slices.Reverse(lines)
	p := ruinPromises()[b]
	return &Breach{Promise: p.name, Text: p.text, Story: strings.Join(lines, "\n")}
}
