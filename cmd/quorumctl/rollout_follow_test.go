// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// rolloutBackend returns a backend whose successive reads return the started rollout in these states, with n1 done from
// the third read on.
func rolloutBackend(t *testing.T, text string, states ...string) *fakeBackend {
	t.Helper()
	d := scene(t, "rollout")
	d.onRead = func(look int, s *control.Status) {
		s.Time = s.Time.Add(2 * time.Second)
		r := control.Rollout{
			ID: "k3x7", Work: policy.WorkRestart, Reason: "a fix", By: "root", Started: s.Time,
			State: states[min(look, len(states))-1],
		}
		r.Hosts = []control.RolloutHost{
			{ID: "1", Name: "n1", State: control.RolloutHostCurrent},
			{ID: "2", Name: "n2", State: record.HostWaiting},
		}
		s.Op = &control.Op{Kind: "cycle", Host: "1", HostName: "n1", Phase: "down", Started: s.Time}
		if look > 2 {
			r.Hosts[0].State, r.Hosts[0].Seconds, r.Text, s.Op = record.HostDone, 20, text, nil
		}
		if r.State == record.RolloutDone {
			r.Hosts[1].State, r.Hosts[1].Seconds = record.HostDone, 20
		}
		s.Rollout = &r
	}
	return d
}

func TestRolloutStartWait(t *testing.T) {
	t.Parallel()
	const running = record.RolloutRunning
	for name, c := range map[string]struct {
		d    *fakeBackend
		args string
		code int
	}{
		"done": {rolloutBackend(t, "", running, running, running, record.RolloutDone), "--wait", exitOK},
		"stopped": {rolloutBackend(t, "n1 came back with etcd 3.6.12, not 3.6.16", running, record.RolloutPaused,
			record.RolloutStopped), "--wait=1m", exitFault},
		"aborted": {rolloutBackend(t, "by alice", running, running, record.RolloutAborted), "--wait=1m", exitFault},
		"late":    {rolloutBackend(t, "", running, running), "--wait=2s", exitTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			socket, _ := serve(t, c.d)
			got := string(transcript(t, socket, "rollout start restart --yes --reason 'a fix' --hosts n1,n2 "+c.args))
			golden(t, "rollout-wait-"+name+".golden", []byte(got))
			if failed := strings.Contains(got, "(exit "); failed != (c.code != exitOK) {
				t.Errorf("want exit %d", c.code)
			}
		})
	}
}
