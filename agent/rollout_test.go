// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

func TestTheHostThatARolloutIsAtIsToldFromThoseThatWait(t *testing.T) {
	t.Parallel()
	r := record.Rollout{State: record.RolloutRunning, Hosts: []record.RolloutHost{
		{ID: "1", State: record.HostDone, Seconds: 4}, {ID: "2", State: record.HostWaiting}, {ID: "3", State: record.HostWaiting},
	}}
	const done, waiting, current = control.RolloutHostDone, control.RolloutHostWaiting, control.RolloutHostCurrent
	for name, c := range map[string]struct {
		op   *record.Op
		want [3]string
	}{
		"no operation":                {nil, [3]string{done, waiting, waiting}},
		"a cycle of the second":       {&record.Op{Kind: policy.KindCycle, Host: "2"}, [3]string{done, current, waiting}},
		"a cycle of one that is done": {&record.Op{Kind: policy.KindCycle, Host: "1"}, [3]string{done, waiting, waiting}},
		"a join, which is no cycle":   {&record.Op{Kind: policy.KindJoin, Host: "2"}, [3]string{done, waiting, waiting}},
		"a cycle of one not in it":    {&record.Op{Kind: policy.KindCycle, Host: "9"}, [3]string{done, waiting, waiting}},
	} {
		for i, h := range rolloutStatus(r, c.op).Hosts {
			if h.State != c.want[i] {
				t.Errorf("%s: host %s is %s, want %s", name, h.ID, h.State, c.want[i])
			}
		}
	}
}
