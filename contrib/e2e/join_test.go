// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

// formation bounds the time from the start of four hosts until the target is reached.
const formation = 60 * time.Second

func TestFourHostsBecomeThreeVotersAndAStandby(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{hosts: 5, voters: 3, standbys: 1})
	first, fifth := w.hosts[:4], w.hosts[4]
	began := time.Now()
	w.start(first...)
	w.bootstrap()
	w.within(formation, "there are 3 voters and a standby", func() bool { return w.has(3, 1) })
	t.Logf("%.1f s until there were 3 voters and a standby", time.Since(began).Seconds())
	w.verify(3, 1)
	w.waitRolesAgree()

	w.start(fifth)
	w.eventually("the fifth is qualified and reports that there is no place", func() bool {
		return fifth.healthy() && fifth.waitsFor(policy.TargetMet)
	})
	w.never(2*time.Second, "the fifth is in the member list, or acts", func() bool {
		listed, _ := w.is(fifth)
		return listed || w.hasRecord(w.keys().Lock())
	})
	if fifth.role() != policy.RoleSpare {
		t.Errorf("the fifth is %s", fifth.role())
	}
	w.verify(3, 1)
}

// healthy reports whether the host has passed its qualification and is in health state OK.
func (h *host) healthy() bool {
	s, ok := h.status()
	return ok && s.Health.Qualified && s.Health.State == "OK"
}

// waitRolesAgree waits until every running agent reports the role that its host has in etcd, and is idle if its host
// has a member.
func (w *world) waitRolesAgree() {
	w.t.Helper()
	w.eventually("every agent reports its host's role and is idle", func() bool {
		return !slices.ContainsFunc(w.hosts, func(h *host) bool {
			if !h.running {
				return false
			}
			listed, learner := w.is(h)
			want := policy.RoleSpare
			switch {
			case learner && h.Options.Set["host.role"] == "learner":
				want = policy.RoleLearner
			case learner:
				want = policy.RoleStandby
			case listed:
				want = policy.RoleVoter
			}
			s, ok := h.status()
			return !ok || s.Role != want || (listed && (len(s.Reasons) == 0 ||
				s.Reasons[0].Code != string(policy.Idle)))
		})
	})
}
