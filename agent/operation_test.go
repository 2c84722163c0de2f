// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// remove deletes keys, as another client with write access may do.
func (f *fleet) remove(keys ...string) {
	f.t.Helper()
	for _, key := range keys {
		if _, err := f.etcd.of("intruder").Txn(f.t.Context(), nil, clientv3.OpDelete(key)); err != nil {
			f.t.Fatal(err)
		}
	}
}

// keeps requests maintenance of a host whose etcd keeps running, so that the number of live voters delays no other
// host.
func (f *fleet) keeps(name string) {
	f.t.Helper()
	req := control.MaintenanceRequest{
		Work: policy.WorkMaintenance, Reason: "a test", For: control.Duration(4 * time.Hour),
		KeepRunning: true,
	}
	if _, err := f.hosts[name].agent.RequestMaintenance(f.t.Context(), req, "root"); err != nil {
		f.t.Fatal(err)
	}
	f.until(5*time.Minute, name+" is safe to touch", func() bool { return f.state(name) == policy.RequestSafe })
}

func TestNoOtherHostGoesDownWhenTheOperationRecordIsDeleted(t *testing.T) {
	t.Parallel()
	keys := record.KeysFor("test")
	for name, deleted := range map[string][]string{
		"alone": {keys.Op()}, "with its host's record": {keys.Op(), keys.Host("id-v2")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inFleet(t, 1, func(t *testing.T, f *fleet) {
				f.keeps("v2")
				began, _ := f.op()
				f.ask("v3")
				f.pass(5 * time.Minute) // long enough for everything that v3 waits for, except the operation
				f.remove(deleted...)
				for range 100 {
					f.pass(100 * time.Millisecond)
					if f.state("v3") != policy.RequestWaiting || f.state("v2") != policy.RequestSafe {
						t.Fatalf("v3 is %s while v2 is %s", f.state("v3"), f.state("v2"))
					}
				}
				if op, _ := f.op(); op.HostName != "v2" || !op.Started.Equal(began.Started) {
					t.Errorf("the operation belongs to %q, begun %s; want v2, begun %s", op.HostName,
						op.Started, began.Started)
				}
				f.over("v2")
				f.until(10*time.Minute, "v3 follows", func() bool { return f.state("v3") == policy.RequestSafe })
			})
		})
	}
}

func TestNoOtherHostGoesDownWhileADeletedOperationRecordCannotBeRestored(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		f.keeps("v2")
		f.ask("v3")
		f.pass(5 * time.Minute)
		f.hosts["v2"].die() // its host record remains until it expires
		f.remove(record.KeysFor("test").Op())
		f.pass(30 * time.Second)
		if s := f.state("v3"); s != policy.RequestWaiting {
			t.Errorf("v3 is %s during the operation of v2", s)
		}
		if d := f.hosts["v3"].agent.publisher.Current().Decision; d.Reasons[0].Code != policy.OperationInFlight {
			t.Errorf("the reasons of v3 are %v", d.Reasons)
		}
	})
}

func TestAnOperatorCanReleaseAnOperationWithoutItsRecord(t *testing.T) {
	t.Parallel()
	for name, alive := range map[string]bool{
		"its record exists": true,
		"its record is deleted, and its host cannot write it again": false,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inFleet(t, 1, func(t *testing.T, f *fleet) {
				f.keeps("v2")
				if !alive {
					f.hosts["v2"].die()
					f.remove(record.KeysFor("test").Op())
					f.pass(5 * time.Second)
				}
				value, err := record.Encode(record.Rollout{
					ID: "x", Work: "reboot", State: record.RolloutRunning,
					Hosts: []record.RolloutHost{{ID: "id-v2", Name: "v2", State: record.HostWaiting}},
				})
				must(t, err)
				f.put(record.KeysFor("test").Rollout(), string(value))
				must(t, f.hosts["v1"].agent.ReleaseOp(t.Context(), control.ReleaseRequest{Reason: "a test"}, "root"))
				if r := f.rollout(); r.State != record.RolloutStopped {
					t.Errorf("the rollout that waits for v2 is %s", r.State)
				}
				if !alive {
					f.hosts["v2"].boot("boot-again")
				}
				f.until(time.Minute, "v2 has no request any more", func() bool { return f.state("v2") == "" })
				if f.etcd.get(record.KeysFor("test").Op()) != "" {
					t.Error("the released operation is recorded again")
				}
			})
		})
	}
}

func TestAnOperationWhoseEarlyEndFailedIsRecordedAgainAsItBegan(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		f.keeps("v2")
		files := f.hosts["v2"].agent.files
		before, _ := files.Asked()
		want := *before
		must(t, files.OperationGivenUp())
		f.pass(time.Minute)
		got, _ := files.Asked()
		if got == nil || !got.Seen || !got.Began.Equal(want.Began) || got.BootID != want.BootID ||
			got.Clock != want.Clock || got.Cluster != want.Cluster {
			t.Errorf("%+v is recorded, want %+v", got, want)
		}
	})
}
