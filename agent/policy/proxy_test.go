// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math/rand/v2"
	"testing"

	"github.com/quorumd/quorumd/health"
)

// proxyView returns a view of a cluster of three voters and a learner, all healthy.
func proxyView() View {
	v := View{Cluster: Cluster{Reachable: true}}
	for i, name := range []string{"n1", "n2", "n3", "n4"} {
		v.Cluster.Members = append(v.Cluster.Members,
			Member{ID: uint64(i + 1), Name: name, PeerURL: "http://" + name, Live: true, Learner: name == "n4"})
		v.Hosts = append(v.Hosts, Host{ID: "id-" + name, Name: name, PeerURL: "http://" + name, Health: health.OK})
	}
	return v
}

func TestTheProxyUsesLiveAndHealthyVotersThatAreNotTakenDown(t *testing.T) {
	t.Parallel()
	const used, unused = true, false
	for name, c := range map[string]struct {
		change func(v *View)
		want   []bool // whether the proxy uses n1, n2, n3
		why    string // reason for n1
	}{
		"all are healthy": {func(*View) {}, []bool{used, used, used}, ""},
		"one does not answer": {
			func(v *View) { v.Cluster.Members[0].Live = false },
			[]bool{unused, used, used},
			"does not answer",
		},
		"one is SLOW": {
			func(v *View) { v.Hosts[0].Health = health.Slow },
			[]bool{unused, used, used},
			"is SLOW",
		},
		"one is STALLED": {
			func(v *View) { v.Hosts[0].Health = health.Stalled },
			[]bool{unused, used, used},
			"is STALLED",
		},
		"one is WARM": {
			func(v *View) { v.Hosts[0].Health = health.Warm }, []bool{used, used, used}, "",
		},
		"the health of n1 is unknown": {func(v *View) { v.Hosts = v.Hosts[1:] }, []bool{used, used, used}, ""},
		"one is taken down": {
			func(v *View) { v.Op = &Op{Kind: KindCycle, Host: "id-n1", Phase: PhaseReady} },
			[]bool{unused, used, used},
			"is taken down",
		},
		"it is back": {
			func(v *View) { v.Op = &Op{Kind: KindCycle, Host: "id-n1", Phase: PhaseBack} },
			[]bool{used, used, used},
			"",
		},
		"one is removed": {
			func(v *View) { v.Op = &Op{Kind: KindRemove, Host: "id-n2", MemberID: 1} },
			[]bool{unused, used, used},
			"is being removed (removal)",
		},
		"one is replaced": {
			func(v *View) { v.Op = &Op{Kind: KindReplace, Host: "id-n4", Replaces: 1} },
			[]bool{unused, used, used},
			"is being removed (replacement)",
		},
		"all are unhealthy": {
			func(v *View) {
				for i := range v.Hosts {
					v.Hosts[i].Health = health.Slow
				}
			},
			[]bool{used, used, used},
			"is SLOW",
		},
		"two voters are dead, and n1 is unhealthy": {
			func(v *View) {
				v.Cluster.Members[1].Live, v.Cluster.Members[2].Live = false, false
				v.Hosts[0].Health = health.Slow
			},
			[]bool{used, unused, unused},
			"is SLOW",
		},
		"no voter answers this host": {
			func(v *View) {
				for i := range v.Cluster.Members {
					v.Cluster.Members[i].Live = false
				}
			},
			[]bool{used, used, used},
			"does not answer",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := proxyView()
			c.change(&v)
			all, ok := ProxyTargets(v)
			if !ok || len(all) != 3 {
				t.Fatalf("%v, %v; want the three voters and not the learner", all, ok)
			}
			for i, f := range all {
				if f.Use != c.want[i] {
					t.Errorf("%s is used: %v, want %v", f.Name, f.Use, c.want[i])
				}
			}
			if all[0].Why != c.why {
				t.Errorf("the reason not to use n1 is %q, want %q", all[0].Why, c.why)
			}
		})
	}
}

func TestTheProxyUsesNoMemberOfAnUnreachedOrAnotherCluster(t *testing.T) {
	t.Parallel()
	silent, foreign, empty := proxyView(), proxyView(), View{Cluster: Cluster{Reachable: true}}
	silent.Cluster.Reachable = false
	foreign.Cluster.ID, foreign.Cluster.ExpectedID = 1, 2
	for name, v := range map[string]View{"silent": silent, "foreign": foreign, "empty": empty} {
		if all, ok := ProxyTargets(v); ok {
			t.Errorf("%s: %v is used", name, all)
		}
	}
}

// This test checks random views.
func TestTheProxyAlwaysUsesAVoterAndNoWorseOne(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(16, 6))
	for range 20_000 {
		v := proxyView()
		for i := range v.Hosts {
			v.Cluster.Members[i].Live = r.IntN(2) == 0
			v.Hosts[i].Health = health.State(r.IntN(int(health.Failed) + 1))
		}
		v.Op = []*Op{
			nil,
			{Kind: KindCycle, Host: "id-n1"},
			{Kind: KindRemove, MemberID: 2},
			{Kind: KindReplace, Replaces: 3},
			{Kind: KindJoin, Host: "id-n4"},
		}[r.IntN(5)]
		all, ok := ProxyTargets(v)
		worth := func(f ProxyTarget) int {
			m, _ := v.memberByID(f.Member)
			switch {
			case f.Why == "":
				return 2
			case m.Live:
				return 1
			}
			return 0
		}
		best := 0
		for _, f := range all {
			best = max(best, worth(f))
		}
		for _, f := range all {
			if !ok || f.Use != (worth(f) == best) {
				t.Fatalf("%+v is wrong in %+v, operation %+v", f, all, v.Op)
			}
		}
	}
}
