// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/systemd"
)

func TestAUnitIsAskedWhatItStartsAndWhetherABootDoes(t *testing.T) {
	t.Parallel()
	c := hostConfig()
	c.Etcd.Binary = "/usr/bin/etcd"
	for _, k := range []struct {
		status    systemd.Status
		program   string
		notAtBoot bool
	}{
		{systemd.Status{LoadState: "loaded", UnitFileState: "enabled", Program: "/usr/bin/etcd"}, "", false},
		{
			systemd.Status{LoadState: "loaded", UnitFileState: "disabled", Program: "/opt/etcd/etcd"},
			"/opt/etcd/etcd",
			true,
		},
		{systemd.Status{LoadState: "loaded"}, "", false}, // of a plain process
	} {
		r := &round.Round{Unit: k.status}
		if u := NewBuilder(c, "boot-1", "i", false).View(r, nil).Unit; u.Program != k.program || u.NotAtBoot != k.notAtBoot {
			t.Errorf("%+v: %+v", k.status, u)
		}
	}
}

func TestTheOutcomeOfARollBackIsThatOfItsRecordOrOfAnOlderAgentsReason(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		op   record.Op
		want policy.ReasonCode
	}{
		"the record names it": {
			record.Op{Phase: "rollback", Outcome: "HEALTH_LOST", Reason: "LEARNER_STALLED: no progress"},
			policy.HealthLost,
		},
		"an older agent's reason begins with it": {
			record.Op{Phase: "rollback", Reason: "LEARNER_STALLED: no progress"}, policy.LearnerStalled,
		},
		"a reason that only begins like a code": {
			record.Op{Phase: "rollback", Reason: "ORPHANED by nobody"}, "ORPHANED by nobody",
		},
		"an operation that goes on has none": {record.Op{Phase: "added", Reason: "ORPHANED: no"}, ""},
	} {
		if got := outcomeOf(&c.op); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
