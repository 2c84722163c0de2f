// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// left is the planner's input after three of five hosts are lost: the facts of the other two, with the longer log on
// n1, and the operator's choices.
type left struct {
	all    []HostRemains
	choice RecoveryChoice
}

func twoOfFive() left {
	var list []ListedMember
	for i := range 5 {
		name := fmt.Sprintf("n%d", i+1)
		list = append(list, ListedMember{ID: uint64(i + 1), Name: name, PeerURL: "http://" + name})
	}
	l := left{choice: RecoveryChoice{Cluster: "demo", Gone: []string{"n3", "n4", "5"}}}
	for i := range 2 {
		l.all = append(l.all, HostRemains{
			HostID: "id-" + list[i].Name, Host: list[i].Name, Cluster: "demo", PeerURL: list[i].PeerURL,
			ClusterID: oldCluster, MemberID: list[i].ID, Term: 4, Index: uint64(200 - i), InData: slices.Clone(list),
		})
	}
	return l
}

// doubtCases returns, for every declared doubt, a change that raises it and the operator's action that resolves it.
func doubtCases() map[string]struct{ raise, end func(l *left) } {
	return map[string]struct{ raise, end func(l *left) }{
		"no facts, or too many": {
			func(l *left) { l.all = nil }, func(l *left) { l.all = twoOfFive().all },
		},
		"a host sees a quorum": {
			func(l *left) { l.all[1].Quorum = true }, func(l *left) { l.all[1].Quorum = false },
		},
		"a host twice": {
			func(l *left) { l.all = append(l.all, l.all[0]) }, func(l *left) { l.all = l.all[:2] },
		},
		"clusters that etcd made by default": {
			func(l *left) {
				l.all[1].MemberID, l.all[1].ClusterID = defaultMemberID, defaultClusterID
				l.all[1].InData = []ListedMember{{ID: defaultMemberID, Name: "default", PeerURL: defaultPeerURL}}
			},
			func(l *left) { l.all[1].Empty, l.choice.Gone = true, append(l.choice.Gone, "n2") },
		},
		"the same data twice": {
			func(l *left) { l.all[1].MemberID = 1 },
			func(l *left) { l.all, l.choice.Gone = l.all[:1], append(l.choice.Gone, "n2") },
		},
		"another cluster's name": {
			func(l *left) { l.all[1].Cluster = "other" },
			func(l *left) { l.all, l.choice.Gone = l.all[:1], append(l.choice.Gone, "n2") },
		},
		"another cluster's data": {
			func(l *left) { l.all[1].ClusterID = thirdOne },
			func(l *left) { l.all, l.choice.Gone = l.all[:1], append(l.choice.Gone, "n2") },
		},
		"too old": {
			func(l *left) { l.all[0].Age = MaxFactsAge + time.Second }, func(l *left) { l.all[0].Age = MaxFactsAge },
		},
		"the named survivor is missing": {
			func(l *left) { l.choice.Survivor = "n9" }, func(l *left) { l.choice.Survivor = "n1" },
		},
		"the named survivor cannot continue": {
			func(l *left) { l.choice.Survivor, l.all[1].Empty = "n2", true }, func(l *left) { l.choice.Survivor = "" },
		},
		"data is left": {
			func(l *left) { l.choice.Snapshot = true }, func(l *left) { l.choice.Snapshot = false },
		},
		"no host can continue": {
			func(l *left) { l.all[0].Empty, l.all[1].Empty = true, true },
			func(l *left) { l.choice.Snapshot, l.choice.Gone = true, []string{"n1", "n2", "n3", "n4", "n5"} },
		},
		"a quorum could come back": {
			func(l *left) {
				third := l.all[1]
				third.HostID, third.Host, third.MemberID, third.Index = "id-n3", "n3", 3, 100
				l.all = append(l.all, third)
			},
			func(l *left) { l.choice.Survivor = "n1" },
		},
		"the voters are unknown": {
			func(l *left) { l.all[0].InData, l.all[1].InData = nil, nil },
			func(l *left) { l.all[1].InData = twoOfFive().all[1].InData },
		},
		"an earlier plan is in force": {
			func(l *left) { l.all[1].Plans = []KnownPlan{{ID: "p1", Survivor: "n2"}} },
			func(l *left) { l.all[1].Plans[0].GivenUp = true },
		},
		"an earlier plan may be carried out": {
			func(l *left) {
				l.all[0].Plans = []KnownPlan{{ID: "p1", Survivor: "n3", GivenUp: true}}
				l.all[1].Plans = []KnownPlan{
					{ID: "p1", Survivor: "n3"}, {ID: "p2", Survivor: "n1", GivenUp: true, Age: time.Hour},
				}
			},
			func(l *left) { l.choice.KeptOff = []string{"n3"} },
		},
		"a voter is missing": {
			func(l *left) { l.choice.Gone = []string{"n3", "n5"} },
			func(l *left) { l.choice.Gone = append(l.choice.Gone, "n4") },
		},
		"not the name": {
			func(l *left) { l.choice.Cluster = "demi" }, func(l *left) { l.choice.Cluster = "demo" },
		},
	}
}

func TestEveryDoubtBlocksAPlanUntilResolved(t *testing.T) {
	t.Parallel()
	table := doubtCases()
	for _, d := range recoveryDoubts() {
		row, ok := table[d.name]
		if !ok {
			t.Errorf("no row raises the doubt %q", d.name)
			continue
		}
		delete(table, d.name)
		l := twoOfFive()
		row.raise(&l)
		got := PlanRecovery(l.all, l.choice)
		if got.Doubt == nil || got.Doubt.Name != d.name || got.Doubt.Text == "" || got.Doubt.Remedy == "" {
			t.Errorf("%s: %+v", d.name, got.Doubt)
		}
		row.end(&l)
		if got := PlanRecovery(l.all, l.choice); got.Doubt != nil {
			t.Errorf("%s: after the remedy: %s", d.name, got.Doubt)
		}
	}
	for name := range table {
		t.Errorf("there is no doubt %q", name)
	}
}

func TestADoubtNamesItsRemedyWithTheNamesToUse(t *testing.T) {
	t.Parallel()
	l := twoOfFive()
	l.choice.Gone = []string{"n3"}
	const missing = "facts are missing from n4 and n5: collect them from each host that is reachable; " +
		"make sure that the others never come back with their present data, and confirm that: --gone n3,n4,n5"
	if got := PlanRecovery(l.all, l.choice); got.Doubt.String() != missing {
		t.Errorf("%s", got.Doubt)
	}
	l.all[1].Plans = []KnownPlan{{ID: "p1", Survivor: "n5"}}
	l.choice.KeptOff = []string{"n4"}
	const elsewhere = "n2 received plan p1 with survivor n5, and no collected facts show that n5 gave it up: " +
		"start that " +
		"host, give the plan up there (quorumctl recover give-up) and collect its facts again; or make sure " +
		"that it never starts again with its present data, and confirm that: --kept-off n4,n5"
	if got := PlanRecovery(l.all, l.choice); got.Doubt.String() != elsewhere {
		t.Errorf("%s", got.Doubt)
	}
	l.all[1].Plans = nil
	l.choice.Snapshot = true
	const data = "n1 has the data of a voter, up to entry 200: plan without --from-snapshot to lose less; if this " +
		"data is unusable, name the host that restores the snapshot: --survivor n1"
	if got := PlanRecovery(l.all, l.choice); got.Doubt.String() != data {
		t.Errorf("%s", got.Doubt)
	}
}

func TestTheSurvivorIsTheMostAdvancedOrTheNamedHost(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		change func(l *left)
		want   string
	}{
		"the longer log":        {func(*left) {}, "n1"},
		"the newer term":        {func(l *left) { l.all[1].Term = 5 }, "n2"},
		"the commit":            {func(l *left) { l.all[1].Index, l.all[1].Commit = 200, 7 }, "n2"},
		"the name":              {func(l *left) { l.all[1].Index = 200 }, "n1"},
		"a learner is excluded": {func(l *left) { l.all[0].InData[0].Learner = true }, "n2"},
		"a removed member is excluded": {func(l *left) {
			l.all[0].InData = l.all[0].InData[1:] // n1 was removed, although its log is the longest
		}, "n2"},
		"named": {func(l *left) { l.choice.Survivor = "n2" }, "n2"},
		"an empty host, with a snapshot": {func(l *left) {
			l.all[1].Empty, l.all[0].InData[0].Learner = true, true
			l.choice.Snapshot, l.choice.Gone = true, append(l.choice.Gone, "n2")
		}, "n2"},
		"the named host, with a snapshot": {func(l *left) { l.choice.Snapshot, l.choice.Survivor = true, "n2" }, "n2"},
	} {
		l := twoOfFive()
		c.change(&l)
		if got := PlanRecovery(l.all, l.choice); got.Doubt != nil || l.all[got.Survivor].Host != c.want {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

func TestAPlanIsRefusedForEveryDeclaredReason(t *testing.T) {
	t.Parallel()
	table := map[string]func(p *OfferedPlan){
		"another cluster's plan":  func(p *OfferedPlan) { p.Now.Cluster = "other" },
		"a host outside the plan": func(p *OfferedPlan) { p.Own = nil },
		"a quorum is seen":        func(p *OfferedPlan) { p.Now.Quorum = true },
		"too old":                 func(p *OfferedPlan) { p.Age = MaxPlanAge + time.Second },
		"from the future":         func(p *OfferedPlan) { p.Age = -MaxClockAhead - time.Second },
		"another host":            func(p *OfferedPlan) { p.Now.HostID = "id-n9" },
		"another cluster's facts": func(p *OfferedPlan) { p.Own.Cluster = "other" },
		"other data":              func(p *OfferedPlan) { p.Now.MemberID = 9 },
		"another last entry":      func(p *OfferedPlan) { p.Now.Index++ },
		"another plan since": func(p *OfferedPlan) {
			p.ID, p.Own.Plans = "p3", []KnownPlan{{ID: "p1", Survivor: "n3", GivenUp: true}}
			p.Now.Plans = append([]KnownPlan{{ID: "p3", Survivor: "n1"}, {ID: "p2", Survivor: "n3"}}, p.Own.Plans...)
		},
	}
	shown := func() OfferedPlan {
		l := twoOfFive()
		return OfferedPlan{Cluster: "demo", Age: time.Hour, Own: &l.all[0], Now: twoOfFive().all[0]}
	}
	if text := PlanRefused(shown()); text != "" {
		t.Errorf("the plan is refused: %s", text)
	}
	for _, r := range planRefusals() {
		change := table[r.name]
		if change == nil {
			t.Errorf("no row is refused because of: %s", r.name)
			continue
		}
		p := shown()
		change(&p)
		if text := r.check(p); text == "" || PlanRefused(p) != text {
			t.Errorf("%s: %q, and PlanRefused returns %q", r.name, text, PlanRefused(p))
		}
	}
	if len(table) != len(planRefusals()) {
		t.Errorf("%d rows for %d reasons", len(table), len(planRefusals()))
	}
}

func TestASurvivorsFactsFromBeforeItsPlanDoNotShowThatItGaveThePlanUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		older time.Duration // how much older the survivor's facts are than the report of the plan
		plans []KnownPlan
		doubt bool
	}{
		"newer facts, without that plan":           {-time.Second, nil, false},
		"facts of the same age, without that plan": {0, nil, true},
		"older facts, without that plan":           {time.Minute, nil, true},
		"older facts, with that plan given up": {
			time.Minute, []KnownPlan{{ID: "p1", Survivor: "n2", GivenUp: true}}, false,
		},
		"older facts, with a different plan given up": {
			time.Minute, []KnownPlan{{ID: "p0", Survivor: "n2", GivenUp: true}}, true,
		},
		"older facts, with that plan": {time.Minute, []KnownPlan{{ID: "p1", Survivor: "n2"}}, true},
	} {
		l := twoOfFive()
		l.choice.Gone = []string{"n3", "n4", "n5"}
		l.all[0].Age = 0 // n1's facts are the newest
		l.all[0].Plans = []KnownPlan{{ID: "p1", Survivor: "n2", GivenUp: true, Age: time.Minute}}
		l.all[1].Age, l.all[1].Plans = l.all[0].Plans[0].Age+c.older, c.plans
		text, about := planElsewhere(l.all, l.choice)
		if (text != "") != c.doubt || c.doubt && about != "n2" {
			t.Errorf("%s: %q about %q", name, text, about)
		}
	}
}
