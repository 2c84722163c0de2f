// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"

	"github.com/quorumd/quorumd/health"
)

func TestAnUnreadableRecordBlocksOnlyTheStepsThatDependOnIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind  RecordKind
		holds bool
		hint  string
	}{
		{RecordOp, true, "quorumctl operation release --force --reason '<why>' deletes it"},
		{RecordPause, true, "quorumctl resume deletes it"},
		{RecordRollout, false, "quorumctl rollout abort deletes it"},
		{RecordLock, false, "if it stays: etcdctl del KEY"},
		{
			RecordHost, false,
			"run the same quorumd version there as here, and restart it; if there is no such host: etcdctl del KEY",
		},
		{RecordRetired, false, "quorumctl retire HOST --undo deletes it"},
		{"dance", true, ""},
	} {
		u := Unreadable{c.kind, "KEY", "not JSON"}
		if got := u.info(); got.kind != c.kind || got.blocksAll != c.holds {
			t.Errorf("%s: %+v", c.kind, got)
		}
		if got := u.Hint(); got != c.hint {
			t.Errorf("%s: %q, want %q", c.kind, got, c.hint)
		}
		if got := (View{Unreadable: []Unreadable{u}}).blocksAll(); got != c.holds {
			t.Errorf("%s blocks everything: %v", c.kind, got)
		}
	}
	host := Unreadable{RecordHost, "/quorumd/hosts/n9", "not JSON"}
	pause := Unreadable{RecordPause, "/quorumd/pause", "too long"}
	of := func(list ...Unreadable) func(*View) { return func(v *View) { v.Unreadable = list } }
	mine := func(change func(*View)) func(*View) {
		return func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Mine: true, Token: 5}
			change(v)
		}
	}
	play(t, spareView, []scene{
		{"a host's record", of(host), StepTakeLock, ""},
		{"a pause's record", of(pause), StepNone, RecordUnreadable},
		{"a rollout's record", of(Unreadable{RecordRollout, "/quorumd/rollout", "no end"}), StepTakeLock, ""},
		{"a record of a new kind", of(Unreadable{"dance", "/quorumd/dance", "new"}), StepNone, RecordUnreadable},
		{"two records, and the more important one is named", of(host, pause), StepNone, RecordUnreadable},
		{"two records in a different order", of(pause, host), StepNone, RecordUnreadable},
		{"three records of hosts", of(host, host, host), StepTakeLock, ""},
		{"a host's record, with nothing to do", func(v *View) {
			of(host)(v)
			v.Health.State = health.Slow
		}, StepNone, HealthBad},
		{"a pause's record, with nothing to do", func(v *View) {
			of(pause)(v)
			v.Health.State = health.Slow
		}, StepNone, RecordUnreadable},
		{"a pause's record, and the lock is held without an operation", mine(func(v *View) {
			of(pause)(v)
			v.Health.State = health.Slow
		}), StepReleaseLock, ""},
	})
	play(t, downView, []scene{
		{"a stopped etcd comes back anyway", func(v *View) {
			of(pause)(v)
			v.Asked.Over = true
		}, StepStartUnit, ""},
		{"a returning member's operation does not continue", func(v *View) {
			of(pause)(v)
			v.Asked.Work = WorkReboot
		}, StepNone, RecordUnreadable},
	})
}
