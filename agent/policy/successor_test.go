// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/record"
)

// successorOf returns the record of a named host.
func successorOf(name string) record.Successor {
	return record.Successor{Host: name, Name: name, PeerURL: peerPrefix + name}
}

// namedView returns the view of that host in a cluster of three voters with the ready spares n4 and n5, after an
// operator has named n5 to replace n1. n4 has the faster disk.
func namedView(id string) View {
	v := retiredView("n4")
	v.Hosts[3].P99 = time.Millisecond
	v.Hosts = append(v.Hosts, ready("n5", RoleSpare))
	v.Hosts[4].P99 = 5 * time.Millisecond
	v.Retired[0].Successor = successorOf("n5")
	if id == "n4" || id == "n5" {
		v.Self.ID, v.Self.Name, v.Self.PeerURL = id, id, peerPrefix+id
		return v
	}
	of := retiredView(id)
	of.Hosts, of.Retired = v.Hosts, v.Retired
	return of
}

// vote makes the spare with that index a voter.
func vote(v *View, i int) {
	h := &v.Hosts[i]
	h.Role = RoleVoter
	m := voter(uint64(i+1), h.Name)
	m.Leader = false
	v.Cluster.Members = append(v.Cluster.Members, m)
}

func TestOnlyTheNamedHostReplacesARetiredVoter(t *testing.T) {
	t.Parallel()
	play(t, func() View { return namedView("n5") }, []scene{
		{"the named host joins at once, although another one is faster", nil, StepTakeLock, ""},
		{"the named host has joined already", func(v *View) { vote(v, 4) }, StepNone, TooManyVoters},
	})
	play(t, func() View { return namedView("n4") }, []scene{
		{"a different host does not join", nil, StepNone, LowerRanked},
		{"the named host has become unhealthy", func(v *View) {
			v.Hosts[4].Waiting = HealthBad
		}, StepNone, LowerRanked},
		{"the named host's agent is gone", func(v *View) { v.Hosts = v.Hosts[:4] }, StepNone, LowerRanked},
		{"no host is named, and any host joins", func(v *View) {
			v.Retired[0].Successor = record.Successor{}
		}, StepTakeLock, ""},
		{"a join that has begun is rolled back", func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: time.Minute, Token: 7}
			v.Op = &Op{
				Kind: KindJoin, Host: "n4", HostName: "n4", Target: RoleVoter, Phase: PhaseBegun, Token: 7,
				PeerURL: peerPrefix + "n4", SameBoot: true,
			}
		}, StepRollBack, ""},
	})
	play(t, func() View { return namedView("n1") }, []scene{
		{"the retired voter stays until the named host has joined", nil, StepNone, HostRetired},
		{"the named host has joined, and the retired voter leaves", func(v *View) { vote(v, 4) }, StepTakeLock, ""},
	})
}

func TestAPlaceIsKeptOnlyForTheRetiredVoter(t *testing.T) {
	t.Parallel()
	without := func(name string) func(v *View) {
		return func(v *View) {
			v.Cluster.Members = slices.DeleteFunc(slices.Clone(v.Cluster.Members), func(m Member) bool {
				return m.Name == name
			})
			v.Hosts = slices.DeleteFunc(slices.Clone(v.Hosts), func(h Host) bool { return h.Name == name })
		}
	}
	for name, c := range map[string]struct {
		change func(v *View)
		kept   bool
		first  string // the first of the candidates
	}{
		"one place":                  {func(*View) {}, true, "n5"},
		"another voter is missing":   {without("n2"), false, "n5"},
		"the retired voter has left": {without("n1"), false, "n4"},
		"the named host votes":       {func(v *View) { vote(v, 4) }, false, "n4"},
		"the named host votes, and its agent is gone": {
			func(v *View) { vote(v, 4); v.Hosts = v.Hosts[:4] }, false, "n4",
		},
		"the retirement was undone": {func(v *View) { v.Retired = nil }, false, "n4"},
		"the retirement cannot be read": {
			func(v *View) { v.Retired = []Retired{{Host: "n1"}} }, false, "n4",
		},
	} {
		v := namedView("n2")
		c.change(&v)
		if _, kept := v.keptFrom("n4"); kept != c.kept {
			t.Errorf("%s: the place is kept from n4: %t", name, kept)
		}
		if _, kept := v.keptFrom("n5"); kept {
			t.Errorf("%s: the place is kept from n5", name)
		}
		if got := candidates(v, RoleVoter, true); len(got) == 0 || got[0].ID != c.first {
			t.Errorf("%s: the first candidate is %+v", name, got)
		}
	}
}

func TestAnotherRetiredVoterLeavesFirstWhileASuccessorIsAwaited(t *testing.T) {
	t.Parallel()
	v := namedView("n3")
	v.Retired = append(v.Retired, Retired{Host: "n2", PeerURL: peerPrefix + "n2", MemberID: 2})
	vote(&v, 3)
	if got := leavers(v); got[0].ID != "n2" || got[1].ID != "n1" {
		t.Errorf("%+v", got)
	}
	vote(&v, 4)
	if v.awaitsSuccessor(v.Hosts[0]) {
		t.Error("the successor votes")
	}
}

func TestANamedReplacementIsRefusedWithTheRemedy(t *testing.T) {
	t.Parallel()
	standby := func(v *View, i int) {
		vote(v, i)
		v.Hosts[i].Role = RoleStandby
		m := &v.Cluster.Members[len(v.Cluster.Members)-1]
		m.Learner, m.Standby = true, true
	}
	for _, c := range []struct {
		name, old, next string
		change          func(v *View)
		code            ReasonCode
		want, hint      string // parts of the refusal's text and hint; want is empty if there is no refusal
	}{
		{"a spare", "n2", "n5", nil, "", "", ""},
		{"the standby", "n2", "n5", func(v *View) { standby(v, 4) }, "", "", ""},
		{
			"a spare, and there is a standby", "n2", "n5", func(v *View) { standby(v, 3) }, LearnerPresent,
			"the standby n4 replaces it first", "quorumctl member replace n2 n4",
		},
		{"a spare, and there is a permanent learner", "n2", "n5", func(v *View) {
			standby(v, 3)
			v.Cluster.Members[len(v.Cluster.Members)-1].Permanent = true
		}, "", "", ""},
		{"an unknown host", "n2", "n9", nil, "", "no host with the name or ID n9 runs quorumd", "quorumctl status"},
		{"a voter", "n2", "n3", nil, "", "n3 has a voter already", "name a spare"},
		{"itself", "n2", "n2", nil, "", "n2 has a voter already", "name a spare"},
		{"a spare by a spare", "n4", "n5", nil, "", "n4 has no voter", "quorumctl retire n4"},
		{"a retired host", "n2", "n5", func(v *View) {
			v.Retired = []Retired{{Host: "n5", PeerURL: peerPrefix + "n5"}}
		}, HostRetired, "n5 is retired", "quorumctl retire n5 --undo"},
		{
			"a host that cannot join", "n2", "n5", func(v *View) { v.Hosts[4].Waiting = HealthBad }, HealthBad,
			"n5 cannot join now: HEALTH_BAD", "quorumctl explain n5",
		},
		{
			"a host that only observes", "n2", "n5", func(v *View) { v.Hosts[4].Manage = false }, ModeObserve,
			"quorumd on n5 only observes", "set mode: manage",
		},
		{"a host named twice", "n2", "n5", func(v *View) {
			v.Retired = namedView("n2").Retired
		}, "", "n5 is named to replace n1", "name another host"},
		{
			"two voters with two named hosts",
			"n2", "n4", func(v *View) { v.Retired = namedView("n2").Retired }, "", "", "",
		},
		{"another host joins", "n2", "n5", func(v *View) {
			v.Op = &Op{Kind: KindJoin, Host: "n4", HostName: "n4", Target: RoleVoter, PeerURL: peerPrefix + "n4"}
		}, OperationInFlight, "n4 is joining", "quorumctl operation show"},
		{
			"there are too many voters already", "n2", "n5", func(v *View) { v.Target.Voters = 1 }, TargetMet,
			"no host has to replace n2: without it, 2 of 1 voters are left", "quorumctl retire n2",
		},
	} {
		v := namedView("n2")
		v.Retired = nil
		if c.change != nil {
			c.change(&v)
		}
		switch r := AgainstRetire(v, c.old, c.next); {
		case r == nil && c.want != "":
			t.Errorf("%s is accepted", c.name)
		case r != nil && (c.want == "" || r.Code != c.code || !strings.Contains(r.Text, c.want) || r.Hint == "" ||
			!strings.Contains(r.Hint, c.hint)):
			t.Errorf("%s: %+v, want %q and the remedy %q", c.name, *r, c.want, c.hint)
		}
	}
	v := namedView("n2")
	if r := AgainstRetire(v, "n5", ""); r == nil || !strings.Contains(r.Text, "n5 is named to replace n1") {
		t.Errorf("the named host is retired: %+v", r)
	}
}

func TestANamedSuccessorMayAlwaysBeCleared(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(v *View){
		"another host is ready":               func(*View) {},
		"no host is ready":                    func(v *View) { v.Hosts = v.Hosts[:3] },
		"the retired host is gone":            func(v *View) { v.Hosts = v.Hosts[1:] },
		"the retired host observes":           func(v *View) { v.Hosts[0].Manage = false },
		"the retired host is in an operation": func(v *View) { v.Hosts[0].InOperation = true },
		"a pause":                             func(v *View) { v.Pause = &Pause{By: "root"} },
	} {
		v := namedView("n2")
		change(&v)
		if r := AgainstRetire(v, "n1", ""); r != nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	v := namedView("n2")
	if r := AgainstRetire(v, "n1", "n4"); r != nil {
		t.Errorf("another host is named: %+v", r)
	}
	v.Hosts = v.Hosts[:3]
	if r := AgainstRetire(v, "n1", "n4"); r == nil {
		t.Error("a host without a record is named")
	}
}

func TestThePlanNamesTheSuccessor(t *testing.T) {
	t.Parallel()
	v := namedView("n2")
	v.Retired = nil
	const joins = "n5 joins as a learner, catches up and becomes a voter"
	if got := RetirePlan(v, "n2", successorOf("n5")); len(got) != 3 || got[0].Text != joins || got[0].WaitsFor != "" {
		t.Errorf("%+v", got)
	}
	v.Hosts[4].Waiting = HealthBad
	if got := RetirePlan(v, "n2", successorOf("n5")); got[0].Text != joins ||
		got[0].WaitsFor != "it is not ready; quorumctl explain n5 shows why" {
		t.Errorf("%+v", got)
	}
	v = namedView("n1")
	if text, _ := retired(v); text != "retired by root: old; its voter leaves once n5 has joined" {
		t.Error(text)
	}
	v = namedView("n4")
	const clear = " → to let any host join: quorumctl retire n1 --reason '<why>'"
	for state, change := range map[string]func(){
		"":                          func() {},
		"; n5 waits for HEALTH_BAD": func() { v.Hosts[4].Waiting = HealthBad },
		"; no quorumd runs on n5":   func() { v.Hosts = v.Hosts[:4] },
	} {
		v = namedView("n4")
		change()
		want := "only n5 may join: root named it to replace n1" + state + clear
		if r, holds := vetoed(v, vetoLowerRanked); !holds || r.Text != want {
			t.Errorf("%q: %+v", state, r)
		}
	}
}

func TestNoOtherHostThanTheNamedOneReplacesAnUnhealthyVoterThatAnswers(t *testing.T) {
	t.Parallel()
	v := unhealthyView()
	named := ready("n5", RoleSpare)
	named.Waiting = HealthBad
	v.Hosts = append(v.Hosts, named)
	v.Target.Resized, v.PlaceFreeFor = true, time.Hour
	if d := Decide(v); d.Step.Kind != StepTakeLock {
		t.Errorf("no host is named: %+v", d)
	}
	v.Retired = []Retired{{
		Host: "n3", PeerURL: peerPrefix + "n3", MemberID: 3, By: "root", Successor: successorOf("n5"),
	}}
	if d := Decide(v); d.Step.Kind != StepNone || !strings.Contains(d.Reasons[0].Text, "only n5 may join") {
		t.Errorf("n5 is named: %+v", d)
	}
}

func TestAVoterWithANamedSuccessorDoesNotLeaveInPlaceOfAnother(t *testing.T) {
	t.Parallel()
	v := namedView("n1")
	vote(&v, 3) // n4 replaces n2, which is retired too, and whose quorumd only observes
	v.Retired = append(v.Retired, Retired{Host: "n2", PeerURL: peerPrefix + "n2", MemberID: 2, By: "root"})
	v.Target.ResizedFor, v.IdleFor = 100*time.Hour, 100*time.Hour
	v.Hosts[1].Manage = false
	if d := Decide(v); d.Step.Kind != StepNone {
		t.Errorf("n1 leaves, and n5 has not joined: %+v", d)
	}
	vote(&v, 4)
	if d := Decide(v); d.Step.Kind != StepTakeLock {
		t.Errorf("n5 has joined: %+v", d)
	}
}

func TestANamedHostThatVotesWithAnotherURLFreesThePlace(t *testing.T) {
	t.Parallel()
	v := namedView("n4")
	vote(&v, 4)
	for i := range v.Cluster.Members {
		if v.Cluster.Members[i].Name == "n5" {
			v.Cluster.Members[i].PeerURL = "https://n5:2380"
		}
	}
	v.Hosts[4].PeerURL = "https://n5:2380"
	if kept := v.keptPlaces(); len(kept) != 0 {
		t.Errorf("%+v", kept)
	}
}

func TestNoPlaceIsKeptForARetiredHost(t *testing.T) {
	t.Parallel()
	v := namedView("n4")
	if len(v.keptPlaces()) != 1 {
		t.Fatal("no place is kept for n5")
	}
	v.Retired = append(v.Retired, Retired{Host: "n5", PeerURL: peerPrefix + "n5", By: "root"})
	if kept := v.keptPlaces(); len(kept) != 0 {
		t.Errorf("%+v", kept)
	}
}

func TestRetiredVotersLeaveWithoutTheirNamedSuccessorsIfTheClusterBecomesSmaller(t *testing.T) {
	t.Parallel()
	v := namedView("n1")
	vote(&v, 3)
	v.Hosts = append(v.Hosts, ready("n6", RoleSpare))
	v.Retired = append(v.Retired, Retired{
		Host: "n2", PeerURL: peerPrefix + "n2", MemberID: 2, By: "root", Successor: successorOf("n6"),
	})
	v.Target.ResizedFor, v.IdleFor = 100*time.Hour, 100*time.Hour
	if text, waits := notFirstToLeave(v); !waits || !strings.Contains(text, "has not joined yet") {
		t.Errorf("a place is due: %q, %t", text, waits)
	}
	v.Target.Voters = 1
	if text, waits := notFirstToLeave(v); waits {
		t.Errorf("no place is due: %s", text)
	}
}
