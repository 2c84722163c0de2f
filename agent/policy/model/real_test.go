// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build realetcd

package model

import (
	"flag"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

var (
	benches = flag.Int("benches", 5, "number of simultaneous real clusters for each etcd version")
	part    = flag.Duration("part", 0, "limit the time for comparisons; 0: no limit")
	deep    = flag.Bool("deep", false, "compare all pairs of the full exploration, not only of the small scopes")
	bound   = flag.Duration("bound", 14*time.Minute, "uncompared pairs after this time are an error")
)

// least is the minimum number of comparisons, so that every pair is met on several paths.
const least = 2000

// partLeast is the minimum for a part.
const partLeast = 200

func versions() []string { return []string{"v3.5", "v3.6"} }

// scopes returns those whose pairs are compared. In the small ones no voter of three ever fails.
func scopes() []Scenario {
	if *deep {
		return Scenarios()
	}
	return append(slices.Concat(smallScenarios(), replacementScopes()),
		Scenario{
			Name: "3 voters, one fails", Hosts: 5, Voters: 3, Target: policy.Target{Voters: 5},
			Faults: EtcdCrash | MemberCutOff, Budget: 1,
		},
		Scenario{
			Name: "a voter removed", Hosts: 3, Voters: 3, Target: policy.Target{Voters: 3}, Removals: 1,
			Faults: EtcdCrash | MemberCutOff, Budget: 1,
		},
		Scenario{
			Name: "one voter and a standby", Hosts: 2, Voters: 1, Target: policy.Target{Voters: 3, Standbys: 1},
			Faults: EtcdCrash | MemberCutOff, Budget: 2,
		})
}

// replacementScopes returns those in which voters are removed without an operator: a dead one before another votes in
// its place, an unhealthy one after that.
func replacementScopes() []Scenario {
	return slices.Concat(smallReplacements(), smallUnhealthy())
}

// met returns the pairs that explorations meet, and the states that they begin in.
func met(t *testing.T) (map[pair]int, map[cluster]int) {
	t.Helper()
	p, states := watched(t, scopes())
	firsts, seen, transitions := map[cluster]int{}, map[cluster]bool{}, 0
	for _, sc := range scopes() {
		first := sc.first()
		w := etcdOnly(&first)
		at, _ := clusterOf(&w)
		firsts[at] = sc.Voters
	}
	for q, n := range p.met {
		transitions += n
		seen[q.at] = true
	}
	for at := range seen {
		for _, q := range questions(at) {
			if p.met[q] == 0 {
				p.met[q] = 0
			}
		}
	}
	t.Logf("%d explored states are %d states of etcd, and %d transitions that involve etcd and all that could "+
		"be asked there, are %d pairs of a state and an operation",
		states, len(seen), transitions, len(p.met))
	return p.met, firsts
}

// questions returns what etcd may be asked in a state beyond what quorumd asks: every change that the model expects to
// be refused, and the removal of one of three voters. They are asked while nothing is in flight. Removing one of two
// voters is left out, since quorumd never does it. The remaining voter, killed before its next write, has been seen to
// start with the old list and to wait forever for the removed one's vote, since etcd had not written to disk that the
// removal is committed.
func questions(at cluster) (list []pair) {
	w := at.world(maxHosts)
	if !w.quorum() {
		return nil
	}
	for i := range w.n {
		h := &w.hosts[i]
		if h.unit == starting || h.env != noEnv || h.isolated != 0 || (h.list == unlisted && at.key[i] != 0) {
			return nil
		}
	}
	for i := range w.n {
		if i > 0 && at.key[i] == at.key[i-1] {
			continue
		}
		for _, k := range []opKind{opAdd, opPromote, opRemove} {
			o := operation{kind: k, host: uint8(i)}
			voters, _ := w.votes()
			if ofTheModel().refuses(&w, o) != accepted || (k == opRemove && w.hosts[i].list == voter && voters == 3) {
				list = append(list, pair{at, o})
			}
		}
	}
	return list
}

func TestRealEtcdBehavesAsTheModelClaims(t *testing.T) {
	t.Parallel()
	pairs, firsts := met(t)
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			p := newPlan(pairs, firsts)
			p.least = least
			all, began, until := maps.Clone(p.left), time.Now(), *bound
			if *part > 0 {
				until = *part
			}
			var working sync.WaitGroup
			for range *benches {
				working.Go(func() { p.work(t, version, ofTheModel(), began.Add(until)) })
			}
			working.Wait()
			pairs := len(all)
			maps.DeleteFunc(all, func(q pair, _ bool) bool { return p.done[q] })
			t.Logf("etcd %s: %d of %d pairs compared, %d times at the end of %d different paths, in %d traces with "+
				"%d change calls, in %.0f s: %d differences; answers that the model leaves open: %v",
				version, pairs-len(all), pairs, p.steps, len(p.paths), p.traces, p.calls, time.Since(began).Seconds(),
				len(p.differ), p.open)
			for _, story := range p.differ {
				t.Error(story)
			}
			if *part > 0 && p.steps < partLeast {
				t.Errorf("%d comparisons are too few", p.steps)
			}
			for q := range all {
				if *part > 0 {
					continue
				}
				t.Errorf("not compared: %s | %s", q.at.text(), q.text())
			}
		})
	}
}
