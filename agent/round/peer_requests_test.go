// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package round

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// asking returns a round of n1 while the operation of n2, member 2, asks about connections: in PhaseVerify to member 2,
// otherwise to the other voters. The etcd of n1 has active connections to all members.
func asking(phase policy.OpPhase) *Round {
	r := &Round{AskedSince: time.Minute}
	r.Op = &record.Op{
		Kind: policy.KindCycle, Work: string(policy.WorkReaddress), Phase: string(phase), MemberID: 2,
	}
	r.Membership = cluster.Membership{Members: []cluster.Member{
		{ID: 1, PeerURLs: []string{"http://n1:2380"}},
		{ID: 2, PeerURLs: []string{"https://n2:2380"}},
		{ID: 3, PeerURLs: []string{"https://n3:2380"}},
		{ID: 4, PeerURLs: []string{"https://n4:2380"}, Learner: true},
	}}
	r.Connections = Connections{
		Known: true, At: 2 * time.Minute, Active: map[uint64]bool{1: true, 2: true, 3: true, 4: true},
	}
	return r
}

func sent(at time.Duration, url, why string) PeerRequests {
	return PeerRequests{At: at, Of: map[string]string{url: why}}
}

func TestAnActiveConnectionToAnHTTPSMemberCountsOnlyWithAnAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sent PeerRequests
		want bool
		text string
	}{
		"no request":        {PeerRequests{}, false, ""},
		"answered":          {sent(2*time.Minute, "https://n2:2380", ""), true, ""},
		"answered too soon": {sent(time.Minute, "https://n2:2380", ""), false, ""},
		"refused": {
			sent(2*time.Minute, "https://n2:2380", "refused"),
			false,
			"GET https://n2:2380/version: refused",
		},
		"refused too soon":   {sent(time.Minute, "https://n2:2380", "refused"), false, ""},
		"of another member":  {sent(2*time.Minute, "https://n3:2380", ""), false, ""},
		"at another address": {sent(2*time.Minute, "https://n2:9", ""), false, ""},
	} {
		r := asking(policy.PhaseVerify)
		r.PeerRequests = c.sent
		if r.PeerRequests.Unneeded = true; !r.AnswersNow() {
			t.Errorf("%s: a request is needed", name)
		}
		r.PeerRequests.Unneeded = false
		if got := r.AnswersNow(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if got := r.Unreached(1); got != c.text {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestWhoIsAskedAboutDependsOnThePhase(t *testing.T) {
	t.Parallel()
	ids := func(r *Round) (all []uint64) {
		for _, m := range r.PeersAsked(1) {
			all = append(all, m.ID)
		}
		return all
	}
	if got := ids(asking(policy.PhaseVerify)); len(got) != 1 || got[0] != 2 {
		t.Errorf("after the restart: %v", got)
	}
	if got := ids(asking(policy.PhaseReady)); len(got) != 1 || got[0] != 3 {
		t.Errorf("before it: %v", got)
	}
	if got := ids(asking(policy.PhaseBack)); len(got) != 0 {
		t.Errorf("in between: %v", got)
	}
}
