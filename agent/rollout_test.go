// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

func TestAnOperationOfARolloutCanBeOverdue(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		req := control.RolloutRequest{Work: policy.WorkReboot, Reason: "a test", Hosts: []string{"v2"}}
		if _, err := f.hosts["v1"].agent.StartRollout(t.Context(), req, "root"); err != nil {
			t.Fatal(err)
		}
		f.untilEvery(50*time.Millisecond, 5*time.Minute, "its operation begins", func() bool {
			_, at := f.op()
			return at != 0
		})
		if op, _ := f.op(); op.Until.Sub(op.Started) != control.DefaultMaintenance {
			t.Errorf("it began at %s, and is to end at %s", op.Started, op.Until)
		}
	})
}

func TestARolloutOfUnknownWorkIsIgnored(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		req := control.RolloutRequest{Work: "rebalance", Reason: "a test", Hosts: []string{"v2"}}
		if _, err := f.hosts["v1"].agent.StartRollout(t.Context(), req, "root"); err != nil {
			t.Fatal(err)
		}
		f.pass(5 * time.Minute)
		if k, _ := f.hosts["v2"].agent.files.Asked(); k != nil {
			t.Errorf("it became a request for %s: %+v", k.Work, k)
		}
	})
}

func TestARolloutTakesAHostOnlyFromItsOwnKey(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		keys, v1 := record.KeysFor("test"), f.hosts["v1"].agent
		f.put(keys.Host("x/id-v2"), f.etcd.get(keys.Host("id-v2")))
		req := control.RolloutRequest{Work: policy.WorkReboot, Reason: "a test"}
		if got, err := v1.StartRollout(t.Context(), req, "root"); err == nil {
			t.Errorf("a rollout of all hosts was started with %+v", got.Hosts)
		}
		req.Hosts = []string{"v2"}
		if got, err := v1.StartRollout(t.Context(), req, "root"); err != nil || len(got.Hosts) != 1 {
			t.Errorf("with v2 alone: %+v, %v", got.Hosts, err)
		}
	})
}

func TestAForgedRolloutThatNamesAHostTwiceTakesNoHostDown(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		host := `{"id":"id-v2","name":"v2","state":"waiting"}`
		f.put(record.KeysFor("test").Rollout(),
			`{"version":1,"id":"x","work":"restart","state":"running","by":"eve","hosts":[`+host+`,`+host+`]}`)
		f.pass(5 * time.Minute)
		if k, _ := f.hosts["v2"].agent.files.Asked(); k != nil {
			t.Errorf("v2 has a request: %+v", k)
		}
		if text := f.tells("v1", record.KeysFor("test").Rollout()); !strings.Contains(text,
			"it is in the list already") {
			t.Errorf("v1 reports %q", text)
		}
	})
}
