// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

func TestRolloutEndsWithItsLastHostEvenIfPausedMeanwhile(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{
		record.RolloutRunning: record.RolloutDone, record.RolloutPaused: record.RolloutDone,
		record.RolloutAborted: record.RolloutAborted,
	} {
		a := New(options(t, hoststate.HostFiles{}))
		r := &round.Round{
			Request: &hoststate.Request{Request: policy.Request{Work: policy.WorkRestart}, Rollout: "x"},
		}
		r.Op = &record.Op{Kind: policy.KindCycle, Host: "2"}
		r.View.Op = &policy.Op{}
		r.Rollout = &record.Rollout{
			ID: "x", State: state,
			Hosts: []record.RolloutHost{{ID: "1", State: record.HostDone}, {ID: "2", State: record.HostWaiting}},
		}
		also := a.rolloutWrites(r, policy.Step{Kind: policy.StepEndOp, Outcome: policy.Cycled})
		if len(also) != 1 {
			t.Fatalf("%s: %d writes", state, len(also))
		}
		next, err := record.Decode[record.Rollout](also[0].Value)
		if err != nil || next.State != want || len(next.Waiting()) != 0 {
			t.Errorf("%s becomes %+v, %v", state, next, err)
		}
	}
}

func TestHostsTimeInARolloutStartsAtThePreviousHostsEnd(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		since time.Time
		want  float64
	}{
		"the pause after the previous host counts":        {began, 70},
		"the previous host's clock was ahead":             {began.Add(time.Hour), 12},
		"the start time is not recorded":                  {time.Time{}, 12},
		"the rollout was resumed while etcd was starting": {began.Add(65 * time.Second), 12},
	} {
		a := New(options(t, hoststate.HostFiles{}))
		r := &round.Round{
			Request: &hoststate.Request{
				Request: policy.Request{Work: policy.WorkRestart}, Rollout: "x",
			}, Wall: began.Add(70 * time.Second),
		}
		r.Op = &record.Op{Kind: policy.KindCycle, Host: "2"}
		r.View.Op = &policy.Op{SameBoot: true, Elapsed: 12 * time.Second}
		r.Rollout = &record.Rollout{
			ID: "x", State: record.RolloutRunning, Since: c.since,
			Hosts: []record.RolloutHost{{ID: "2", State: record.HostWaiting}, {ID: "3", State: record.HostWaiting}},
		}
		also := a.rolloutWrites(r, policy.Step{Kind: policy.StepEndOp, Outcome: policy.Cycled})
		next, err := record.Decode[record.Rollout](also[0].Value)
		if err != nil || next.Hosts[0].Seconds != 12 || next.Hosts[0].Turn != c.want || !next.Since.Equal(r.Wall) {
			t.Errorf("%s: %+v, %v", name, next, err)
		}
	}
}

func TestHostsTimeInARolloutIncludesItsReboot(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := &round.Round{Wall: began.Add(40 * time.Second)}
	r.Op = &record.Op{Started: began}
	for name, c := range map[string]struct {
		op   policy.Op
		want time.Duration
	}{
		"without a reboot": {
			policy.Op{SameBoot: true, Elapsed: 39 * time.Second}, 39 * time.Second,
		},
		"after a reboot": {policy.Op{Elapsed: 5 * time.Second}, 40 * time.Second},
		"after the clock was set forward or back": {policy.Op{Elapsed: 2 * time.Minute}, 2 * time.Minute},
	} {
		r.View.Op = &c.op
		if got := took(r); got != c.want {
			t.Errorf("%s: it took %v, want %v", name, got, c.want)
		}
	}
}

func TestRolloutStopsIfItsEndCannotBeWritten(t *testing.T) {
	t.Parallel()
	a := New(options(t, hoststate.HostFiles{}))
	r := &round.Round{Request: &hoststate.Request{Request: policy.Request{Work: policy.WorkReboot}, Rollout: "x"}}
	r.Op = &record.Op{Kind: policy.KindCycle, Host: "2"}
	r.View.Op = &policy.Op{}
	r.Rollout = &record.Rollout{ID: "x", State: record.RolloutRunning}
	for i := range record.MaxHosts {
		r.Rollout.Hosts = append(r.Rollout.Hosts, record.RolloutHost{
			ID: fmt.Sprint(i), Name: strings.Repeat("n", 200),
			State: record.HostWaiting,
		})
	}
	also := a.rolloutWrites(r, policy.Step{Kind: policy.StepEndOp, Outcome: policy.Cycled})
	if len(also) != 1 {
		t.Fatalf("%d writes, and it would come to this host again", len(also))
	}
	next, err := record.Decode[record.Rollout](also[0].Value)
	if err != nil || next.State != record.RolloutStopped || len(next.Waiting()) != 0 ||
		!strings.Contains(next.Text, "1000 hosts") {
		t.Errorf("it becomes %+v, %v", next, err)
	}
}
