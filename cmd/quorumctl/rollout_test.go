// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/record"
)

func TestRolloutCommands(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, scene(t, "rollout"))
	golden(t, "rollout-changes.golden", transcript(t, socket,
		"rollout start reboot --yes --reason 'new kernel' --hosts n3,n1 --until-version v3.6.16",
		"rollout start command upgrade --yes --reason 'a new etcd'", "rollout pause", "rollout resume", "rollout abort",
		"rollout status -o yaml", "status"))
}

func TestRolloutStatusWatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state, text string
		code        int
	}{
		{record.RolloutDone, "", exitOK},
		{record.RolloutStopped, "n2 came back with etcd 3.6.12, not 3.6.16", exitFault},
		{record.RolloutAborted, "by root", exitFault},
	} {
		t.Run(c.state, func(t *testing.T) {
			t.Parallel()
			d := scene(t, "rollout")
			d.onRead = func(look int, s *control.Status) {
				s.Time = s.Time.Add(2 * time.Second)
				if look == 2 {
					r := *s.Rollout
					r.State, r.Text = c.state, c.text
					if c.state == record.RolloutDone {
						r.Hosts = []control.RolloutHost{{Name: "n1", State: record.HostDone, Seconds: 61}}
					}
					s.Rollout = &r
				}
			}
			d.rounds = 1
			socket, _ := serve(t, d)
			got := transcript(t, socket, "rollout status --watch --interval 100ms")
			golden(t, "rollout-"+c.state+".golden", got)
			if r := quorumctl(t, socket, "rollout", "status", "--watch", "--interval", "100ms"); r.code != c.code {
				t.Errorf("exit %d, want %d", r.code, c.code)
			}
		})
	}
}

func TestRemainingTimeUsesTheMedian(t *testing.T) {
	t.Parallel()
	host := func(state string, seconds float64) control.RolloutHost {
		return control.RolloutHost{State: state, Seconds: seconds}
	}
	done, waiting, current := record.HostDone, record.HostWaiting, control.RolloutHostCurrent
	for _, c := range []struct {
		name  string
		state string
		hosts []control.RolloutHost
		left  time.Duration
		known bool
	}{
		{
			"nothing done yet", record.RolloutRunning,
			[]control.RolloutHost{host(waiting, 0), host(current, 0)},
			0,
			false,
		},
		{
			"one slow host does not count", record.RolloutRunning,
			[]control.RolloutHost{host(done, 10), host(done, 900), host(done, 12), host(waiting, 0), host(current, 0)},
			24 * time.Second, true,
		},
		{
			"two are averaged", record.RolloutRunning,
			[]control.RolloutHost{host(done, 10), host(done, 20), host(current, 0)},
			15 * time.Second, true,
		},
		{
			"the pause between two hosts counts", record.RolloutRunning,
			[]control.RolloutHost{{State: done, Seconds: 10, TurnSeconds: 70}, host(waiting, 0), host(current, 0)},
			140 * time.Second, true,
		},
		{"paused has no end", record.RolloutPaused, []control.RolloutHost{host(done, 10), host(waiting, 0)}, 0, false},
		{"done has none left", record.RolloutDone, []control.RolloutHost{host(done, 10)}, 0, false},
	} {
		if left, known := display.Remaining(control.Rollout{State: c.state, Hosts: c.hosts}); left != c.left ||
			known != c.known {
			t.Errorf("%s: %s, %t", c.name, left, known)
		}
	}
}
