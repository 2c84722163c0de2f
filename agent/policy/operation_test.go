// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"testing"
)

func TestEveryKindOfOperationIsDeclaredInFull(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, o := range operations() {
		if seen[o.kind] || o.kind == "" || o.noun == "" || o.carry == nil || o.title == nil || len(o.phases) == 0 ||
			o.phases[0] != PhaseBegun {
			t.Errorf("%q is declared twice or in part: %+v", o.kind, o)
		}
		seen[o.kind] = true
		for _, p := range o.awaitsRecords {
			if !AwaitsRecords(o.kind, p) || !slices.Contains(Phases(o.kind), p) {
				t.Errorf("%s asks in %s, which is not one of its phases", o.kind, p)
			}
		}
	}
}

func TestEveryOtherVotersHostAnswersAnOperationThatAsks(t *testing.T) {
	t.Parallel()
	asks := &Op{Kind: KindCycle, Host: "1", Phase: PhaseReady}
	for name, c := range map[string]struct {
		op   *Op
		role Role
		want bool
	}{
		"a voter":   {asks, RoleVoter, true},
		"a standby": {asks, RoleStandby, false},
		"a standby that verifies a URL": {
			&Op{Kind: KindCycle, Host: "1", Phase: PhaseVerify}, RoleStandby, true,
		},
		"a permanent learner that verifies a URL": {
			&Op{Kind: KindCycle, Host: "1", Phase: PhaseVerify}, RoleLearner, true,
		},
		"its own host":         {&Op{Kind: KindCycle, Host: "2", Phase: PhaseReady}, RoleVoter, false},
		"no host is asked yet": {&Op{Kind: KindCycle, Host: "1", Phase: PhaseBegun}, RoleVoter, false},
		"there is none":        {nil, RoleVoter, false},
	} {
		v := View{Op: c.op}
		if v.Self.ID = "2"; MustPublish(v, c.role) != c.want {
			t.Errorf("%s: it answers: %t", name, !c.want)
		}
	}
}

func TestKindsOfOperationsDifferOnlyByTheirDeclarations(t *testing.T) {
	t.Parallel()
	op := Op{MemberID: 7, Replaces: 8}
	titled := OperationTitle{HostName: "n1", Target: "n3", Work: "reboot", Member: "c0ffee"}
	differs := map[string]struct {
		takesDown, removes bool
		out                uint64
		title              string
	}{
		KindJoin:    {title: "join of n1 as n3"},
		KindCycle:   {takesDown: true, title: "cycle of n1 for reboot"},
		KindLeave:   {out: 7, title: "leave of voter n1"},
		KindRemove:  {removes: true, out: 7, title: "removal of member n3 (c0ffee) by n1"},
		KindReplace: {out: 8, title: "replacement by n1 as n3"},
		"later":     {title: "later of n1 as n3"},
	}
	for _, kind := range Kinds() {
		if _, is := differs[kind]; !is {
			t.Errorf("the properties of a kind of operation are not declared for %q", kind)
		}
	}
	for kind, want := range differs {
		op.Kind, titled.Kind = kind, kind
		if TakesDown(kind) != want.takesDown || Removes(kind) != want.removes || op.RemovedMember() != want.out ||
			Title(titled) != want.title {
			t.Errorf("%s: takes down %t, removes %t, takes out %d, is called %q; want %+v", kind, TakesDown(kind),
				Removes(kind), op.RemovedMember(), Title(titled), want)
		}
	}
	var none *Op
	if none.RemovedMember() != 0 || Title(OperationTitle{Kind: KindJoin, HostName: "n1"}) != "join of n1 as member" {
		t.Error("without an operation a member is removed, or the title of a join without a role is wrong")
	}
}

func TestThePhasesOfEveryKindOfOperation(t *testing.T) {
	t.Parallel()
	want := map[string][]OpPhase{
		KindJoin: Phases(KindJoin), KindCycle: {PhaseBegun, PhaseReady, PhaseDown, PhaseBack, PhaseVerify},
		KindLeave:   {PhaseBegun, PhaseRemoving, PhaseRollback},
		KindRemove:  Phases(KindRemove),
		KindReplace: {PhaseBegun, PhaseRemoving, PhaseAdded, PhaseStarted, PhasePromoted, PhaseRollback},
	}
	for _, kind := range Kinds() {
		if got := Phases(kind); !slices.Equal(got, want[kind]) {
			t.Errorf("%s: %v, want %v", kind, got, want[kind])
		}
	}
}
