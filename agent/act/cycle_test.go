// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/systemd"
)

func TestStopForACancelledRequestLeavesTheNewRequestAlone(t *testing.T) {
	t.Parallel()
	opt := options(t, hoststate.HostFiles{})
	decided := &hoststate.Request{Request: policy.Request{Work: policy.WorkMaintenance}, Since: time.Unix(1, 0)}
	ask(t, opt, &hoststate.Request{
		Request: policy.Request{Work: policy.WorkMaintenance, KeepRunning: true}, Since: time.Unix(2, 0),
	})
	if err := New(opt).noteStop(t.Context(), &task{on: &round.Round{Request: decided}}); err == nil ||
		!strings.Contains(err.Error(), "cancelled") {
		t.Errorf("the take-down ended with %v", err)
	}
	held, _ := opt.Files.StartGuarded()
	if now, _ := opt.Files.Asked(); now.Stopped || held {
		t.Errorf("etcd is noted as stopped for %+v, held back: %t", now, held)
	}
}

func TestNoOperationBeginsForACancelledRequest(t *testing.T) {
	t.Parallel()
	opt := options(t, hoststate.HostFiles{})
	r := decided(policy.StepBeginCycle, &hoststate.Request{
		Request: policy.Request{Work: policy.WorkRestart}, Since: time.Unix(1, 0),
	})
	err := New(opt).beginCycle(t.Context(), &task{on: r})
	if err == nil || !strings.Contains(err.Error(), "cancelled") {
		t.Errorf("it ended with %v", err)
	}
}

// orderedUnit records the calls that it receives.
type orderedUnit struct {
	systemd.Unit
	calls []string
	err   error // SetEnvironment returns this error
}

func (u *orderedUnit) SetEnvironment(context.Context, map[string]string) error {
	u.calls = append(u.calls, "environment")
	return u.err
}

func (u *orderedUnit) Stop(context.Context) error {
	u.calls = append(u.calls, "stop")
	return nil
}

func TestAReaddressWritesTheEnvironmentBeforeItStopsEtcd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		step policy.Step
		err  error
		want []string
	}{
		"a readdress":                  {policy.Step{WriteEnv: true}, nil, []string{"environment", "stop"}},
		"the environment is not saved": {policy.Step{WriteEnv: true}, errors.New("disk full"), []string{"environment"}},
		"other work":                   {policy.Step{}, nil, []string{"stop"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opt, unit := options(t, hoststate.HostFiles{}), &orderedUnit{err: c.err}
			opt.Unit = unit
			a := New(opt)
			env := map[string]string{"ETCD_LISTEN_PEER_URLS": "http://10.0.0.2:2380"}
			on := &task{step: c.step, on: &round.Round{Environment: env}}
			if err := a.takeDown(t.Context(), on); !errors.Is(err, c.err) {
				t.Errorf("it ended with %v", err)
			}
			if !slices.Equal(unit.calls, c.want) {
				t.Errorf("calls: %v, want %v", unit.calls, c.want)
			}
			if a.environmentBegun(on); (a.did.EnvironmentBegun != nil) != c.step.WriteEnv {
				t.Errorf("the write of the environment counts as begun: %v", a.did.EnvironmentBegun)
			}
			if a.environmentWritten(on); (a.did.Environment != nil) != c.step.WriteEnv {
				t.Errorf("the environment counts as written: %v", a.did.Environment)
			}
		})
	}
}
