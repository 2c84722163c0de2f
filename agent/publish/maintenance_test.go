// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

func TestARequestNewerThanTheRoundDoesNotShowTheProgramOfTheLast(t *testing.T) {
	t.Parallel()
	p := &Publisher{opt: Options{BootID: "boot-1", Wall: time.Now}}
	k := &hoststate.Request{
		Request: policy.Request{Work: policy.WorkCommand, Program: "upgrade"}, Since: time.Unix(1, 0),
	}
	r := &round.Round{Request: k}
	r.View.Cluster.Reachable = true
	r.View.Asked = &policy.Asked{
		Request: policy.Request{Work: policy.WorkCommand}, Command: policy.Hooks{State: policy.HooksRunning},
	}
	if got := p.Maintenance(r, k).State; got != policy.RequestWorking {
		t.Errorf("the running request is %s", got)
	}
	newer := &hoststate.Request{Request: policy.Request{Work: policy.WorkReboot}, Since: time.Unix(2, 0)}
	if got := p.Maintenance(r, newer).State; got != policy.RequestWaiting {
		t.Errorf("the newer request is %s", got)
	}
	rebooted := &hoststate.Request{
		Request: policy.Request{Work: policy.WorkReboot, Stopped: true}, Since: time.Unix(2, 0), BootID: "boot-0",
	}
	if got := p.Maintenance(r, rebooted).State; got != policy.RequestReturning {
		t.Errorf("the rebooted request is %s", got)
	}
	if p.Maintenance(&round.Round{}, k).State != policy.RequestWaiting {
		t.Error("a request newer than the round is not queued")
	}
	if r.View.Asked.Work != policy.WorkCommand || r.View.Asked.Stopped {
		t.Error("the shared round was changed")
	}
}

func TestARolloutDistinguishesTheCurrentHostFromWaitingOnes(t *testing.T) {
	t.Parallel()
	r := record.Rollout{State: record.RolloutRunning, Hosts: []record.RolloutHost{
		{ID: "1", State: record.HostDone, Seconds: 4},
		{ID: "2", State: record.HostWaiting},
		{ID: "3", State: record.HostWaiting},
	}}
	const done, waiting, current = record.HostDone, record.HostWaiting, control.RolloutHostCurrent
	for name, c := range map[string]struct {
		op   *record.Op
		want [3]string
	}{
		"no operation": {nil, [3]string{done, waiting, waiting}},
		"a cycle of the second host": {
			&record.Op{Kind: policy.KindCycle, Host: "2"},
			[3]string{done, current, waiting},
		},
		"a cycle of a host that is done": {
			&record.Op{Kind: policy.KindCycle, Host: "1"},
			[3]string{done, waiting, waiting},
		},
		"a join, which is no cycle": {
			&record.Op{Kind: policy.KindJoin, Host: "2"},
			[3]string{done, waiting, waiting},
		},
		"a cycle of a host outside the rollout": {
			&record.Op{Kind: policy.KindCycle, Host: "9"},
			[3]string{done, waiting, waiting},
		},
	} {
		for i, h := range RolloutOf(r, c.op).Hosts {
			if h.State != c.want[i] {
				t.Errorf("%s: host %s is %s, want %s", name, h.ID, h.State, c.want[i])
			}
		}
	}
}
