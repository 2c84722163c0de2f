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
	deep    = flag.Bool("deep", false, "compare the pairs of all scopes, not only of the small ones")
	bound   = flag.Duration("bound", 14*time.Minute, "report pairs that are not compared after this time")
)

// minComparisons is the minimum number of comparisons, so that every pair is reached on several paths.
const minComparisons = 2000

// minPartComparisons is the minimum with -part.
const minPartComparisons = 200

func versions() []string { return []string{"v3.5", "v3.6"} }

// scopes returns the scopes whose pairs are compared. In smallScenarios, no member of a cluster that begins with three
// voters fails, so further scopes cover that.
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
			Name: "healthy voters leave", Hosts: 5, Voters: 5, Target: policy.Target{Voters: 5}, ResizeTo: 3,
		},
		Scenario{
			Name: "one voter and a standby", Hosts: 2, Voters: 1, Target: policy.Target{Voters: 3, Standbys: 1},
			Faults: EtcdCrash | MemberCutOff, Budget: 2,
		})
}

// replacementScopes returns the scopes in which agents remove voters: a dead one before its replacement is promoted, an
// unhealthy one afterwards.
func replacementScopes() []Scenario {
	return slices.Concat(smallReplacements(), smallUnhealthy())
}

// exploredPairs returns the pairs of all explorations, and the number of voters by initial state.
func exploredPairs(t *testing.T) (map[pair]int, map[cluster]int) {
	t.Helper()
	p, states := collectPairs(t, scopes())
	firsts, seen, transitions := map[cluster]int{}, map[cluster]bool{}, 0
	for _, sc := range scopes() {
		first := sc.initial()
		w := etcdOnly(&first)
		at, _ := clusterOf(&w)
		firsts[at] = sc.Voters
	}
	for q, n := range p.count {
		transitions += n
		seen[q.at] = true
	}
	for at := range seen {
		for _, q := range extraPairs(at) {
			if p.count[q] == 0 {
				p.count[q] = 0
			}
		}
	}
	t.Logf("%d explored states are %d states of etcd; %d transitions that involve etcd, and the extra requests, "+
		"are %d pairs of a state and an operation",
		states, len(seen), transitions, len(p.count))
	return p.count, firsts
}

// extraPairs returns requests to compare even if no exploration sends them in this state: every change that etcd
// refuses according to the model, and the removal of one of three voters. It returns none while a different operation
// is in progress.
//
// The removal of one of two voters is left out. If the remaining voter is killed before its next write, it may start
// with the old list and wait forever for the vote of the removed one, because etcd has not yet written to disk that the
// removal is committed. quorumd removes one of two voters only on an operator's request.
func extraPairs(at cluster) (list []pair) {
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
			if modelClaims().refuses(&w, o) != accepted || (k == opRemove && w.hosts[i].list == voter && voters == 3) {
				list = append(list, pair{at, o})
			}
		}
	}
	return list
}

func TestRealEtcdBehavesAsTheModelClaims(t *testing.T) {
	t.Parallel()
	pairs, firsts := exploredPairs(t)
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			p := newPlan(pairs, firsts)
			p.minSteps = minComparisons
			all, began, until := maps.Clone(p.left), time.Now(), *bound
			if *part > 0 {
				until = *part
			}
			var working sync.WaitGroup
			for range *benches {
				working.Go(func() { p.work(t, version, modelClaims(), began.Add(until)) })
			}
			working.Wait()
			pairs := len(all)
			maps.DeleteFunc(all, func(q pair, _ bool) bool { return p.done[q] })
			t.Logf("etcd %s: %d of %d pairs compared, in %d comparisons on %d different paths, in %d traces with "+
				"%d change calls, in %.0f s: %d differences; answers that the model leaves open: %v",
				version, pairs-len(all), pairs, p.steps, len(p.paths), p.traces, p.calls, time.Since(began).Seconds(),
				len(p.differences), p.openAnswers)
			for _, story := range p.differences {
				t.Error(story)
			}
			if *part > 0 && p.steps < minPartComparisons {
				t.Errorf("only %d comparisons", p.steps)
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
