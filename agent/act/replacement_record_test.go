// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

func TestEjectedHostIsRecordedOncePerMember(t *testing.T) {
	t.Parallel()
	const n3 = "http://n3"
	a := New(options(t, hoststate.HostFiles{}))
	wall := time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC)
	r := &round.Round{Wall: wall}
	r.Membership.Members = []cluster.Member{{ID: 7, Name: "n3", PeerURLs: []string{n3, "http://other"}}}
	write := func(counts bool, replaces record.MemberID) bool {
		t.Helper()
		op := record.Op{
			Kind: policy.KindReplace, Host: "4", HostName: "n4", Phase: string(policy.PhaseRemoving),
			Replaces: replaces,
		}
		r.Op, r.Decision.Notes.Repair = &op, counts
		also, err := a.repairWrites(r, op)
		if err != nil || len(also) > 1 {
			t.Fatalf("%d records, %v", len(also), err)
		}
		if len(also) == 0 {
			return false
		}
		written, err := record.Decode[record.Repairs](also[0].Value)
		if err != nil || also[0].Key != a.keys.Repairs() || also[0].At != r.RepairsAt {
			t.Fatalf("%+v, %v", also[0], err)
		}
		r.Repairs, r.RepairsAt = &written, r.RepairsAt+1
		return true
	}
	out := func() int { n, _ := r.Repairs.Ejections("", n3, wall); return n }
	if write(false, 7) {
		t.Error("the replacement is recorded although the policy does not count it")
	}
	if !write(true, 7) || out() != 1 {
		t.Errorf("after one ejection the record is %+v", r.Repairs)
	}
	if !write(true, 7) || out() != 1 { // another operation for the same member
		t.Errorf("a second try makes it %d times: %+v", out(), r.Repairs)
	}
	r.Membership.Members[0].ID = 8
	if !write(true, 8) || out() != 2 {
		t.Errorf("after another one the record is %+v", r.Repairs)
	}
}
