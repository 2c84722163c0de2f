// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

// grace is the shortest grace period that the configuration allows.
const grace = 30 * time.Second

// cleanFor is how long a replaced host must be healthy before it joins again.
const cleanFor = 5 * time.Second

// repairWorld makes a world in which dead voters are replaced: three voters, led by n1, and n4 as a standby or a spare.
func repairWorld(t *testing.T, standbys int) *world {
	t.Helper()
	return repairWorldWith(t, worldOptions{hosts: 4, standbys: standbys})
}

func repairWorldWith(t *testing.T, o worldOptions) *world {
	t.Helper()
	o.set = map[string]string{"repair.dead": grace.String(), "repair.cleanFor": cleanFor.String()}
	w := newWorld(t, o)
	w.start(w.hosts[:3]...)
	w.bootstrap()
	w.within(2*formation, "there are 3 voters", func() bool { return w.has(3, 0) })
	w.start(w.hosts[3])
	w.within(2*formation, "n4 is ready", func() bool { return w.has(3, o.standbys) })
	w.waitRolesAgree()
	w.lead(w.hosts[0])
	return w
}

// replaced waits until a host is not a member and three others vote.
func (w *world) replaced(dead *host) {
	w.t.Helper()
	began := time.Now()
	w.within(grace+bound, "another host replaces "+dead.Options.Name, func() bool {
		listed, _ := w.is(dead)
		return !listed && w.has(3, 0)
	})
	w.t.Logf("full strength %s later, with a grace period of %s", time.Since(began).Round(100*time.Millisecond), grace)
}

// repairOf returns the code and the text with which the first replacement by a host ended, according to the history; ""
// if none has.
func (w *world) repairOf(h *host) string {
	w.t.Helper()
	lines, err := w.history()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, l := range lines {
		if l.Kind == "operation" && strings.HasPrefix(l.Text, "replacement by "+h.Options.Name+" ") {
			return l.Code + ": " + l.Text
		}
	}
	return ""
}

func TestTheStandbyReplacesADeadFollowerWhichReturnsAsTheStandby(t *testing.T) {
	t.Parallel()
	w := repairWorld(t, 1)
	n3, n4 := w.hosts[2], w.hosts[3]
	n3.powerOff()
	w.replaced(n3)
	w.verify(3, 0)
	if got := w.repairOf(n4); !strings.Contains(got, "JOINED: ") || !strings.Contains(got, "in place of n3") {
		t.Errorf("the history has %q", got)
	}
	w.start(n3)
	w.eventually("n3 reports that it was ejected, and that it must be healthy for a while first", func() bool {
		return n3.hasReason(policy.Ejected)
	})
	seen := time.Now()
	w.within(2*formation, "n3 is back as a standby", func() bool { return w.has(3, 1) })
	t.Logf("n3 was a standby %s after it had reported that", time.Since(seen).Round(100*time.Millisecond))
	w.verify(3, 1)
	for _, h := range w.hosts {
		w.eventually(h.Options.Name+" has the whole repair, in order", func() bool {
			return inOrder(me().ctl(h, "history", "-n", "100").oneLine(),
				"n4 step begin-replace recording that this host replaces a voter as voter: in place of n3",
				"n4 step remove-member removing a member for good: in place of n3",
				"n4 step promote promoting the learner to voter",
				"n4 op JOINED replacement by n4 as voter has ended",
				"n3 step move-data-aside moving the old data directory aside: it belongs to member",
				"n3 op JOINED join of n3 as standby has ended",
			)
		})
	}
}

// inOrder reports whether a text contains these parts, in this order.
func inOrder(text string, parts ...string) bool {
	for _, part := range parts {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return true
}

func TestASpareReplacesADeadLeaderWhichReturnsAsASpare(t *testing.T) {
	t.Parallel()
	w := repairWorld(t, 0)
	n1 := w.hosts[0]
	n1.powerOff()
	w.replaced(n1)
	w.verify(3, 0)
	w.start(n1)
	w.waitRolesAgree()
	w.verify(3, 0)
	if w.isVoter(n1) || n1.role() != "spare" {
		t.Errorf("n1 is a %s", n1.role())
	}
}

func TestADeadVoterThatIsBackBeforeItsRemovalStays(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"after begin-replace", "before remove-member"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := repairWorld(t, 1)
			n3, n4 := w.hosts[2], w.hosts[3]
			before := w.memberID(n3)
			n4.stopAt(at)
			n3.powerOff()
			w.within(grace+bound, n4.Options.Name+" has stopped "+at, n4.stopped)
			w.start(n3)
			w.eventually("n3 answers", func() bool { return w.leader(n3) != 0 })
			if at == "after begin-replace" {
				n4.resume()
			} else { // n4 had decided before n3 was back; after a restart it decides again
				n4.crash(at, agentOnly)
				n4.resume()
				w.start(n4)
			}
			w.verify(3, 1)
			if w.memberID(n3) != before || !w.isVoter(n3) {
				t.Errorf("n3 was removed: %v", w.members())
			}
			if got := w.repairOf(n4); at == "after begin-replace" && !strings.Contains(got, string(policy.MemberLive)) {
				t.Errorf("the history has %q", got)
			}
		})
	}
}
