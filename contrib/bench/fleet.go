// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed"
)

const (
	clusterName = "demo" // cluster name in the configuration that testbed.Host writes
	// formBound is how long hosts may take to form a cluster, and restBound how long they may take until all are idle.
	formBound = 4 * time.Minute
	restBound = 2 * time.Minute
	// askBound is how long one call may take.
	askBound = 2 * time.Second
)

// fleet is a group of hosts, each with an agent and an etcd as plain processes.
type fleet struct {
	s     *site
	hosts []*testbed.Host // n1, n2, …
}

// fleet creates hosts without starting them.
func (s *site) fleet(n int, each func(i int, o *testbed.HostOptions) error) (*fleet, error) {
	ports, err := s.ports(3 * n)
	if err != nil {
		return nil, err
	}
	var endpoints []string
	for i := range n {
		endpoints = append(endpoints, loopback(ports[3*i]))
	}
	f := &fleet{s: s}
	for i := range n {
		name := fmt.Sprintf("n%d", i+1)
		o := testbed.HostOptions{
			Name: name, Dir: filepath.Join(s.dir, name), Agent: []string{s.quorumd, "run"}, Etcd: s.etcd,
			ClientURL: endpoints[i], PeerURL: loopback(ports[3*i+1]),
			Metrics: fmt.Sprintf("127.0.0.1:%d", ports[3*i+2]), Endpoints: endpoints, Set: settings(n),
		}
		if err := each(i, &o); err != nil {
			return nil, err
		}
		h, err := testbed.NewHost(o)
		if err != nil {
			return nil, err
		}
		s.atEnd(func(ctx context.Context) error { return stop(ctx, h) })
		f.hosts = append(f.hosts, h)
	}
	return f, nil
}

// stop ends a host's processes. On a busy disk Host.Stop may time out, so stop repeats it.
func stop(ctx context.Context, h *testbed.Host) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := h.Stop(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

// settings returns the settings that differ from a real host's. The disk limits are loose, because all hosts share one
// disk.
func settings(voters int) map[string]string {
	return map[string]string{
		"cluster.voters": fmt.Sprint(voters), "cluster.standbys": "0",
		"etcd.environment":    fmt.Sprintf(`{ETCD_QUOTA_BACKEND_BYTES: "%d"}`, quota),
		"disk.qualifySamples": "30", "disk.window": "20", "disk.starved": "100",
		"disk.fsyncClear": "1s", "disk.fsyncWarm": "2s", "disk.fsyncSlow": "5s", "disk.stall": "20s",
	}
}

// start starts the agents of these hosts.
func (f *fleet) start(indexes ...int) error {
	for _, i := range indexes {
		if err := f.hosts[i].Start(); err != nil {
			return err
		}
	}
	return nil
}

// bootstrap starts the first host and bootstraps the cluster on it.
func (f *fleet) bootstrap() error {
	if err := f.start(0); err != nil {
		return err
	}
	first := f.hosts[0]
	asked := false
	err := f.s.until("n1 to bootstrap a cluster", formBound, func(ctx context.Context) bool {
		ctx, cancel := context.WithTimeout(ctx, askBound)
		defer cancel()
		if !asked {
			_, err := first.Client.Bootstrap(ctx, clusterName)
			asked = err == nil
		}
		status, err := first.Client.Status(ctx)
		return err == nil && status.Role == policy.RoleVoter
	})
	return f.explain(err)
}

// form creates a cluster of n voters with the times of the demo. If shipped is true, it then restarts the agents with
// quorumd's default times.
func (s *site) form(n int, shipped bool, set map[string]string) (*fleet, error) {
	all := map[policy.Role]int{policy.RoleVoter: n}
	return s.formWith(n, all, shipped, func(_ int, o *testbed.HostOptions) error {
		maps.Copy(o.Set, set)
		return nil
	})
}

// formWith is like form, with the given number of hosts in each role.
func (s *site) formWith(
	n int, roles map[policy.Role]int, shipped bool, each func(i int, o *testbed.HostOptions) error,
) (*fleet, error) {
	f, err := s.fleet(n, each)
	if err != nil {
		return nil, err
	}
	if err := f.bootstrap(); err != nil {
		return nil, err
	}
	for i := 1; i < n; i++ {
		if err := f.start(i); err != nil {
			return nil, err
		}
	}
	if err := f.waitIdle(roles, formBound); err != nil || !shipped {
		return f, err
	}
	return f, f.restartWithDefaults(roles)
}

// restartWithDefaults restarts all agents with quorumd's default times.
func (f *fleet) restartWithDefaults(roles map[policy.Role]int) error {
	ctx, cancel := context.WithTimeout(f.s.ctx, endBound)
	defer cancel()
	for i, h := range f.hosts {
		h.Options.Shipped = true
		if err := errors.Join(h.StopAgent(ctx), h.WriteConfig(), f.start(i)); err != nil {
			return err
		}
	}
	return f.waitIdle(roles, restBound)
}

// waitIdle waits until each role has the given number of hosts and all hosts are idle.
func (f *fleet) waitIdle(roles map[policy.Role]int, bound time.Duration) error {
	return f.explain(f.s.until("every host to be idle", bound, func(ctx context.Context) bool {
		have := map[policy.Role]int{}
		for _, h := range f.hosts {
			status, err := f.status(ctx, h)
			if err != nil || status.Op != nil || len(status.Reasons) == 0 ||
				!slices.Contains([]string{string(policy.Idle), string(policy.TargetMet)}, status.Reasons[0].Code) {
				return false
			}
			have[status.Role]++
		}
		return maps.Equal(have, roles)
	}))
}

func (f *fleet) status(ctx context.Context, h *testbed.Host) (control.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	return h.Client.Status(ctx)
}

// explain adds to an error each host's reason for waiting.
func (f *fleet) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", err, f.why())
}

func (f *fleet) why() string {
	var parts []string
	for _, h := range f.hosts {
		status, err := f.status(context.WithoutCancel(f.s.ctx), h)
		text := "does not answer"
		if err == nil && len(status.Reasons) > 0 {
			text = fmt.Sprintf("%s, %s: %s", status.Role, status.Reasons[0].Code, status.Reasons[0].Text)
		}
		parts = append(parts, h.Options.Name+": "+text)
	}
	return strings.Join(parts, "; ")
}

// etcd returns a client of one host's etcd.
func (f *fleet) etcd(i int) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{f.hosts[i].Options.ClientURL}, Logger: zap.NewNop()})
}
