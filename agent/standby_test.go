// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// put writes a key, as another client with write access may do.
func (f *fleet) put(key, value string) {
	f.t.Helper()
	if _, err := f.etcd.of("intruder").Txn(f.t.Context(), nil, clientv3.OpPut(key, value)); err != nil {
		f.t.Fatal(err)
	}
}

// learner returns the started learner, if there is one.
func (f *fleet) learner() (cluster.Member, bool) {
	for _, m := range f.etcd.list() {
		if m.Learner && m.Name != "" {
			return m, true
		}
	}
	return cluster.Member{}, false
}

// forge writes an operation record that requests a rollback of the standby's join.
func (f *fleet) forge(m cluster.Member) {
	f.t.Helper()
	op := record.Op{
		Kind: policy.KindJoin, Host: "id-" + m.Name, HostName: m.Name, Target: "voter",
		Phase:    string(policy.PhaseRollback),
		MemberID: record.MemberID(m.ID), PeerURL: m.PeerURLs[0], Started: time.Now(), Reason: "ORPHANED: it was not",
	}
	value, err := record.Encode(op)
	if err != nil {
		f.t.Fatal(err)
	}
	f.put(record.KeysFor("test").Op(), string(value))
}

func TestAForgedOperationDoesNotCostTheStandby(t *testing.T) {
	t.Parallel()
	for name, alive := range map[string]bool{
		"its host ends it": true,
		"another host ends it if that host's agent is gone": false,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFleetWith(t, 1, 1, smallPace())
				defer f.close()
				ops := record.KeysFor("test").Op()
				f.until(20*time.Minute, "there is a standby", func() bool {
					_, ok := f.learner()
					return ok && f.etcd.get(ops) == ""
				})
				f.pass(time.Minute)
				standby, _ := f.learner()
				if !alive {
					f.hosts[standby.Name].die()
				}
				f.forge(standby)
				f.until(10*time.Minute, "the operation ends", func() bool { return f.etcd.get(ops) == "" })
				if m, ok := f.learner(); !ok || m.ID != standby.ID {
					t.Errorf("the standby was %x, and is %x now, there: %t", standby.ID, m.ID, ok)
				}
				if line := f.etcd.get(record.KeysFor("test").Ended()); !strings.Contains(line,
					string(policy.OperationRejected)) {
					t.Errorf("the operation has ended as %s, not as %s", line, policy.OperationRejected)
				}
			})
		})
	}
}
