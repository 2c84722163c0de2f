// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// A leader's agent times requests through its own etcd. These worlds explore every sequence of their results, with the
// judge and the policy that run in production.

// requestOutcome is the result of one probe, and what the other two voters do at that time.
type requestOutcome struct {
	hangs, proves bool // proves is false if nothing follows from the result, for example without a leader
	others        int  // how many of the two others serve without this member
}

// requestLooks is the number of consecutive probes in a world.
const requestLooks = 4

func requestOutcomes() []requestOutcome {
	return []requestOutcome{
		{proves: true},
		{},
		{hangs: true, proves: true},
		{hangs: true, proves: true, others: 1},
		{hangs: true, proves: true, others: 2},
	}
}

// hungMistake seeds a mistake into an agent by changing its readings.
type hungMistake struct {
	name   string
	breach string // what the agent does in some world
	sees   func(r *health.RequestsReading)
}

const (
	transfersEarly  = "it transfers leadership after one request without an answer"
	transfersAlone  = "it transfers leadership although too few other voters serve"
	transfersBlind  = "it transfers leadership because of a request that proves nothing"
	keepsLeadership = "it keeps leading although two requests hang and the others serve"
)

func hungMistakes() []hungMistake {
	return []hungMistake{
		{"counts one probe as two", transfersEarly, func(r *health.RequestsReading) { r.Hung *= 2 }},
		{"ignores that other voters do not answer", transfersAlone, func(r *health.RequestsReading) { r.Others = 2 }},
		{"requires only one other voter", transfersAlone, func(r *health.RequestsReading) { r.Needed = 1 }},
		{"counts a request that proves nothing", transfersBlind, func(r *health.RequestsReading) {
			if !r.Known {
				r.Known, r.Hung, r.Others = true, 2, 2
			}
		}},
		{"ignores requests without an answer", keepsLeadership, func(r *health.RequestsReading) { r.Hung = 0 }},
	}
}

// breachesOf explores all worlds and returns what a leader's agent does wrong.
func breachesOf(t *testing.T, sees func(*health.RequestsReading)) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	all := requestOutcomes()
	worlds := 1
	for range requestLooks {
		worlds *= len(all)
	}
	for n := range worlds {
		judge, err := health.New(health.DefaultThresholds())
		if err != nil {
			t.Fatal(err)
		}
		inRow, stalled := 0, false
		for look := range requestLooks {
			o := all[n%len(all)]
			n /= len(all)
			if inRow++; !o.hangs {
				inRow = 0
			}
			r := health.RequestsReading{Known: o.proves, Host: "n1", Hung: inRow, Others: o.others, Needed: 2}
			if sees != nil {
				sees(&r)
			}
			now := time.Hour + time.Duration(look)*10*time.Second
			v, _ := judge.Observe(health.Input{Now: now, Member: true, Etcd: health.EtcdReading{Requests: r}})
			ring := newLeadershipRing([]health.State{v.State, health.OK, health.OK}, 0)
			_, transfers := ring.round()
			switch due := o.hangs && o.proves && inRow >= 2 && o.others == 2; {
			case transfers && !stalled && !o.proves:
				found[transfersBlind] = true
			case transfers && !stalled && inRow < 2:
				found[transfersEarly] = true
			case transfers && !stalled && !due:
				found[transfersAlone] = true
			case !transfers && due:
				found[keepsLeadership] = true
			default:
				stalled = stalled || due
			}
		}
	}
	return found
}

func TestALeaderWhoseEtcdHangsTransfersLeadershipOnlyAfterTwoProbesAndIfTheOthersServe(t *testing.T) {
	t.Parallel()
	if found := breachesOf(t, nil); len(found) > 0 {
		t.Errorf("without a mistake: %v", found)
	}
	for _, m := range hungMistakes() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			if found := breachesOf(t, m.sees); !found[m.breach] {
				t.Errorf("an agent that %s does only this: %v", m.name, found)
			}
		})
	}
}

// The finding of a hung etcd gates only leadership, so no host treats a hung etcd like a hung disk.
func TestAHungEtcdIsNoReasonToReplaceItsVoter(t *testing.T) {
	t.Parallel()
	judge, err := health.New(health.DefaultThresholds())
	if err != nil {
		t.Fatal(err)
	}
	r := health.RequestsReading{Known: true, Host: "n1", Hung: 2, Others: 2, Needed: 2}
	v, _ := judge.Observe(health.Input{Now: time.Hour, Member: true, Etcd: health.EtcdReading{Requests: r}})
	for _, f := range v.Findings {
		if f.Code == health.EtcdStalled && (f.Gates != health.Leadership || !policy.Unhealthy(f.State)) {
			t.Errorf("got %+v", f)
		}
	}
}
