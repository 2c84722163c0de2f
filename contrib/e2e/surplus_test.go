// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// fourVoters makes a world of four voters with a target of three, as an unfinished replacement leaves it, and returns
// the hosts. The target was five before, and the fifth host disappeared before it could join.
func fourVoters(t *testing.T) (w *world, voters []*host) {
	t.Helper()
	w = newWorld(t, worldOptions{
		hosts: 5, voters: 5,
		set: map[string]string{"repair.dead": grace.String(), "repair.cleanFor": cleanFor.String()},
	})
	w.start()
	w.bootstrap()
	w.within(4*formation, "four vote", func() bool { return w.has(4, 0) })
	for _, h := range w.hosts {
		if h.kill(); w.isVoter(h) {
			voters = append(voters, h)
			h.set("cluster.voters", "3")
		}
	}
	if len(voters) != 4 {
		t.Fatalf("the members are %v", w.members())
	}
	w.start(voters...)
	for _, h := range voters {
		w.eventually(h.Options.Name+" reports one voter too many", func() bool {
			return h.waitsFor(policy.TooManyVoters)
		})
	}
	return w, voters
}

// TestADeadSurplusVoterIsRemovedByAnotherVotersHost has no host that could replace the dead voter.
func TestADeadSurplusVoterIsRemovedByAnotherVotersHost(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"the leader", "a follower"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			w, voters := fourVoters(t)
			w.never(quiet, "a voter that answers is removed", func() bool { return !w.has(4, 0) })
			dead := voters[0]
			if w.lead(dead); who == "a follower" {
				dead = voters[3]
			}
			load := w.load()
			dead.powerOff()
			began := time.Now()
			w.within(grace+bound, dead.Options.Name+" is removed", func() bool {
				listed, _ := w.is(dead)
				return !listed && w.has(3, 0) && !w.busy()
			})
			t.Logf("removed %s after its death, with a grace period of %s",
				time.Since(began).Round(100*time.Millisecond), grace)
			w.verify(3, 0)
			for _, h := range voters {
				if h != dead && !h.writes() {
					t.Errorf("%s does not serve", h.Options.Name)
				}
			}
			w.checkWrites(load.Stop())
			lines, err := w.history()
			must(t, err)
			if !slices.ContainsFunc(lines, func(l record.Line) bool {
				return l.Kind == "operation" && l.Code == string(policy.Removed) && l.Name != dead.Options.Name
			}) {
				t.Errorf("the history has no removal by another host: %+v", lines)
			}
		})
	}
}
