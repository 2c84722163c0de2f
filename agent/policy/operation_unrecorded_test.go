// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"
)

func TestAnOperationWithoutItsRecordIsRecordedAgain(t *testing.T) {
	t.Parallel()
	failed := func(change func(*View)) func(*View) { // etcd has failed, and the start guard is not set
		return func(v *View) {
			v.Asked.Stopped, v.Unit.State = false, UnitFailed
			change(v)
		}
	}
	play(t, unrecordedOperationView, []scene{
		{"the lock is free", nil, StepTakeLock, ""},
		{"it has the lock", func(v *View) { v.Lock.Held, v.Lock.Mine = true, true }, StepRecordAgain, ""},
		{"another host has its name", func(v *View) { v.Self.Conflict = "n9" }, StepNone, InMaintenance},
		{"another agent holds the lock", func(v *View) {
			v.Lock.Held, v.Lock.Holder = true, "n1"
		}, StepNone, InMaintenance},
		{"another host's operation is in flight", func(v *View) {
			v.Op = &Op{Kind: KindCycle, Host: "n1", HostName: "n1", Phase: PhaseDown}
		}, StepNone, InMaintenance},
		{"the cluster is paused", func(v *View) {
			v.Pause = &Pause{By: "root", Reason: "move"}
		}, StepNone, InMaintenance},
		{"the pause cannot be read", func(v *View) {
			v.Unreadable = []Unreadable{{RecordPause, "/quorumd/pause", "not JSON"}}
		}, StepNone, InMaintenance},
		{"its disk hangs", func(v *View) { v.Health.Hangs = true }, StepNone, InMaintenance},
		{"its etcd has failed, and another host has the lock", failed(func(v *View) {
			v.Lock.Held, v.Lock.Holder = true, "n1"
		}), StepStartUnit, ""},
		{"an orphaned join is in flight", failed(func(v *View) {
			v.Op = &Op{Kind: KindJoin, Host: "n9", HostName: "n9", Phase: PhaseAdded, OrphanedFor: time.Hour}
			v.Cluster.Members[2].Live = true
		}), StepTakeLock, ""},
		{"it has nothing else to do, and waits", func(v *View) {
			v.Data, v.Lock.Held, v.Lock.Holder = Data{State: DataEmpty}, true, "n1"
		}, StepNone, LockHeld},
		{"no voter answers", func(v *View) { v.Cluster.Reachable = false }, StepNone, InMaintenance},
		{"it has a removal request, too", func(v *View) {
			v.Removal = &Removal{MemberID: 2, By: "root", Reason: "scrapped", Live: true}
		}, StepTakeLock, ""},
	})
	for _, c := range []struct {
		name  string
		hosts []Host
		op    *Op
		want  string
	}{
		{"no host reports it", []Host{{ID: "n1"}, {ID: "n3"}}, nil, ""},
		{"this host reports it", []Host{{ID: "n3", InOperation: true}}, nil, ""},
		{"another host reports it", []Host{{ID: "n1"}, {ID: "n2", InOperation: true}}, nil, "n2"},
		{"its record exists", []Host{{ID: "n2", InOperation: true}}, &Op{Host: "n2"}, ""},
		{"another host's record exists", []Host{{ID: "n2", InOperation: true}}, &Op{Host: "n1"}, "n2"},
	} {
		h, found := unrecordedOperation(View{Self: Self{ID: "n3"}, Hosts: c.hosts, Op: c.op})
		if h.ID != c.want || found != (c.want != "") {
			t.Errorf("%s: %q, %v", c.name, h.ID, found)
		}
	}
}
