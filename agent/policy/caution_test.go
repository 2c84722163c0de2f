// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
	"testing"
)

// codes returns the codes of a decision's reasons.
func codes(d Decision) (list []ReasonCode) {
	for _, r := range d.Reasons {
		list = append(list, r.Code)
	}
	return list
}

// restingVoter returns the view of n1, one of three voters, with nothing to do.
func restingVoter() View {
	v := voterView()
	v.Op, v.Lock = nil, Lock{Known: true}
	v.Cluster.Members[2] = voter(3, "n3")
	v.Self.MemberID = 1
	return v
}

func TestACautionIsReportedWhileItHolds(t *testing.T) {
	t.Parallel()
	old := func(v *View) { v.Self.Etcd = ParseVersion("3.4.23") }
	newer := func(v *View) {
		v.Self.Etcd = ParseVersion("3.8.0")
		v.Cluster.Members[0].Version = ParseVersion("3.8.0")
	}
	for _, c := range []struct {
		name   string
		change func(*View)
		want   []ReasonCode
	}{
		{"nothing", func(*View) {}, []ReasonCode{Idle}},
		{"an old etcd", old, []ReasonCode{Idle, VersionUnsafe}},
		{"an old but allowed etcd", func(v *View) {
			old(v)
			v.Limits.AllowUnsafe = true
		}, []ReasonCode{Idle, VersionUnsafe}},
		{"an old etcd with an observing agent", func(v *View) {
			old(v)
			v.Self.Mode = Observe
		}, []ReasonCode{Idle, VersionUnsafe}},
		{"another voter's old etcd", func(v *View) {
			v.Cluster.Members[1].Version = ParseVersion("3.5.0")
		}, []ReasonCode{Idle, VersionUnsafe}},
		{"an etcd newer than tested", newer, []ReasonCode{Idle, VersionUntested}},
		{"an allowed etcd newer than tested", func(v *View) {
			newer(v)
			v.Limits.AllowUnsafe = true
		}, []ReasonCode{Idle, VersionUntested}},
		{"a disabled unit", func(v *View) { v.Unit.NotAtBoot = true }, []ReasonCode{Idle, UnitDisabled}},
		{"both", func(v *View) { old(v); v.Unit.NotAtBoot = true }, []ReasonCode{Idle, VersionUnsafe, UnitDisabled}},
		{"a disabled unit that has exited", func(v *View) {
			v.Unit = Unit{State: UnitInactive, NotAtBoot: true, EnvReady: true, SinceStart: Never}
		}, []ReasonCode{UnitStopped, UnitDisabled}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := restingVoter()
			c.change(&v)
			if got := Decide(v); got.Step.Kind != StepNone || !slices.Equal(codes(got), c.want) {
				t.Errorf("got %+v, want %v", got, c.want)
			}
		})
	}
}

func TestAnOldEtcdIsReportedBeforeTheQualifyingRun(t *testing.T) {
	t.Parallel()
	v := spareView()
	v.Health.Qualified, v.Health.Text = false, "0 of 3000 writes"
	v.Self.Etcd, v.Self.Binary, v.Unit.Program = ParseVersion("3.4.23"), "/usr/bin/etcd", "/opt/etcd/etcd"
	d := Decide(v)
	if got := codes(d); len(got) < 2 || got[0] != VersionUnsafe || !slices.Contains(got, NotQualified) {
		t.Errorf("got %v", got)
	}
	want := "this host's etcd is 3.4.23; quorumd checks etcd.binary, /usr/bin/etcd, but the unit starts " +
		"/opt/etcd/etcd: correct etcd.binary"
	if d.Reasons[0].Text != want {
		t.Errorf("got %q, want %q", d.Reasons[0].Text, want)
	}
	v.Self.Etcd = Version{}
	if d := Decide(v); d.Reasons[0].Code != VersionUnknown || !strings.Contains(d.Reasons[0].Text, "/opt/etcd/etcd") {
		t.Errorf("got %+v", d.Reasons)
	}
}

func TestACautionBlocksNoStep(t *testing.T) {
	t.Parallel()
	v := spareView()
	v.Unit.NotAtBoot = true
	if d := Decide(v); d.Step.Kind != StepTakeLock {
		t.Errorf("got %+v", d)
	}
	v = restingVoter()
	v.Unit = Unit{State: UnitFailed, NotAtBoot: true, EnvReady: true, SinceStart: Never}
	if d := Decide(v); d.Step.Kind != StepStartUnit {
		t.Errorf("got %+v", d)
	}
}

func TestASecondaryReasonIsACaution(t *testing.T) {
	t.Parallel()
	d := Decision{Reasons: []Reason{
		{VersionUnsafe, "first"}, {UnitDisabled, "second"}, {LockHeld, "third"}, {VersionUnsafe, "fourth"},
	}}
	if got := d.Cautions(); !slices.Equal(got, []Reason{{UnitDisabled, "second"}, {VersionUnsafe, "fourth"}}) {
		t.Errorf("got %v", got)
	}
	play(t, spareView, []scene{
		{"a caution is not repeated", func(v *View) { v.Self.Etcd = v36(11) }, StepNone, VersionUnsafe},
		{"a missing unit is not reported as disabled", func(v *View) {
			v.Unit = Unit{State: UnitMissing, NotAtBoot: true, Detail: "etcd.service is not-found"}
		}, StepNone, UnitUnusable},
	})
}
