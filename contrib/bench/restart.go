// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// restartBound is how long the restart of all members may take.
const restartBound = 12 * time.Minute

// restartLoad returns the load of a client that can afford to repeat a write: 5 s for each write, 1 s for each attempt.
func restartLoad(endpoints []string) testbed.LoadOptions {
	return testbed.LoadOptions{Endpoints: endpoints, Rate: 50, Retry: true}
}

// plainRestart restarts each member and waits until it answers.
func plainRestart(s *site, n int) (values, error) {
	members, err := s.etcds("n", n)
	if err != nil {
		return nil, err
	}
	w, err := s.watch(restartLoad(urls(members)))
	if err != nil {
		return nil, err
	}
	w.begin()
	for _, m := range members {
		if err := m.Terminate(); err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(s.ctx, readyBound)
		_ = m.Wait(ctx) // Wait returns an error, because the signal ends the process
		cancel()
		if err := m.Restart(context.WithoutCancel(s.ctx)); err != nil {
			return nil, err
		}
		if err := s.ready(m); err != nil {
			return nil, err
		}
	}
	return w.end(s)
}

// agentRestart restarts the members with a rollout.
func agentRestart(s *site, n int) (values, error) {
	f, err := s.form(n, !s.quick, nil)
	if err != nil {
		return nil, err
	}
	before, err := f.pids()
	if err != nil {
		return nil, err
	}
	w, err := s.watch(restartLoad(f.hosts[0].Options.Endpoints))
	if err != nil {
		return nil, err
	}
	w.begin()
	if err := f.rollOut(policy.WorkRestart); err != nil {
		return nil, err
	}
	v, err := w.end(s)
	if err != nil {
		return nil, err
	}
	after, err := f.pids()
	if err != nil {
		return nil, err
	}
	for i, h := range f.hosts {
		if before[i] == after[i] {
			return nil, fmt.Errorf("the rollout is done, but etcd of %s was not restarted", h.Options.Name)
		}
	}
	return v, nil
}

// rollOut starts a rollout over all hosts and waits until it is done.
func (f *fleet) rollOut(work policy.Work) error {
	ctx, cancel := context.WithTimeout(f.s.ctx, askBound)
	defer cancel()
	first := f.hosts[0].Client
	started, err := first.StartRollout(ctx, control.RolloutRequest{Work: work, Reason: "bench"})
	if err != nil {
		return err
	}
	stopped := ""
	err = f.s.until("the rollout to be done", restartBound, func(ctx context.Context) bool {
		status, err := f.status(ctx, f.hosts[0])
		if err != nil || status.Rollout == nil || status.Rollout.ID != started.ID {
			return false
		}
		if status.Rollout.State == record.RolloutStopped {
			stopped = status.Rollout.Text
		}
		return stopped != "" || status.Rollout.State == record.RolloutDone
	})
	if stopped != "" {
		return fmt.Errorf("the rollout has stopped: %s", stopped)
	}
	return f.explain(err)
}

// pids returns the process ID of every etcd.
func (f *fleet) pids() ([]int, error) {
	var all []int
	for _, h := range f.hosts {
		pid, err := h.EtcdPID(f.s.ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, pid)
	}
	return all, nil
}
