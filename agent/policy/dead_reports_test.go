// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"
)

// reportedDead returns the view of voter n1 while voter n3 is dead. n4 is a spare or standby, depending on base.
func reportedDead(base func() View) View {
	v := base()
	v.Self = Self{
		ID: "n1", Name: "n1", PeerURL: peerPrefix + "n1", Mode: Manage, Drives: true, Etcd: v36(16),
		MemberID: 1,
	}
	v.Hosts[0].Own, v.Hosts[2].Own = true, false
	return v
}

func TestTheReportOfADeadVoterPredictsItsReplacement(t *testing.T) {
	t.Parallel()
	soon := func(v *View) { v.Limits.DeadGrace = 11 * time.Minute }
	for name, c := range map[string]struct {
		base   func() View
		change func(v *View)
		want   string // empty if another host replaces the voter
	}{
		"a spare is ready":        {deadView, func(*View) {}, ""},
		"a standby has caught up": {standbyOfDead, func(*View) {}, ""},
		"a standby lags": {
			standbyOfDead, func(v *View) { v.Cluster.Members[3].Lag = 5000 },
			"standby n4 has not yet stayed within 100",
		},
		"a standby has just caught up": {
			standbyOfDead, func(v *View) { v.Cluster.Members[3].SteadyFor = time.Second }, "for 30s",
		},
		"a standby may catch up in time": {
			standbyOfDead, func(v *View) { soon(v); v.Cluster.Members[3].Lag = 5000 }, "",
		},
		"a standby is unhealthy, and a spare is ready": {
			standbyOfDead, func(v *View) {
				v.Hosts[2].Waiting = HealthBad
				v.Hosts = append(v.Hosts, ready("n5", RoleSpare))
			}, "no standby or spare is ready: n4 waits for HEALTH_BAD",
		},
		"the standby's agent is gone, and a spare is ready": {
			standbyOfDead, func(v *View) { v.Hosts[2] = ready("n5", RoleSpare) }, "n4 is a learner, and no other",
		},
		"a spare does not report it dead": {
			deadView, func(v *View) { v.Hosts[2].Waiting = VoterNotLive },
			"n4 has not reported it dead for long enough",
		},
		"a spare may report it dead in time": {
			deadView, func(v *View) { soon(v); v.Hosts[2].Waiting = VoterNotLive }, "",
		},
		"one of five, with three configured": {deadView, oneOfFive(3), "the removal would leave 4"},
		"one of four, with five configured":  {deadView, func(v *View) { ofFour(v, 5) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := reportedDead(c.base)
			c.change(&v)
			all := DeadVoters(v)
			if len(all) != 1 || (all[0].Held == "") != (c.want == "") || !strings.Contains(all[0].Held, c.want) {
				t.Errorf("the reports are %+v", all)
			}
		})
	}
}
