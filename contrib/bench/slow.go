// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed"
)

const (
	// slowBefore is how long writes are measured before the disk becomes slow, and again afterwards.
	slowBefore = 15 * time.Second
	// slowSettled is the pause between the leadership transfer and the second measurement. Without quorumd there is no
	// transfer, so the pause begins slowLeads after the fault.
	slowSettled = 15 * time.Second
	slowLeads   = 30 * time.Second
	// transferBound is how long a slow leader may keep leadership before the row fails.
	transferBound = 3 * time.Minute
	// stepDownRest is longer than timing.transferInterval, after which quorumd may transfer leadership again.
	stepDownRest = 70 * time.Second
)

// slowLeaders returns rows for a leader with slow fsyncs.
func slowLeaders() []row {
	var all []row
	for _, delay := range []time.Duration{
		50 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, 900 * time.Millisecond,
	} {
		all = append(all, row{
			name: "slow-leader/" + delay.String(),
			about: fmt.Sprintf("each fsync of the leader of three takes %v longer; latency of writes through the "+
				"other two, under 50 writes/s", delay),
			plainly: fmt.Sprintf("no intervention; measured %v after the fault, for %v", slowLeads+slowSettled,
				slowBefore),
			ours: fmt.Sprintf("leadership transfer; measured %v after that for %v", slowSettled, slowBefore),
			figures: []figure{
				{name: leadFor, unit: "s", digits: 1, ours: true},
				{name: tailBefore, unit: "ms", basis: true},
				{name: tailLater, unit: "ms"},
				{name: tailGrown, unit: "×", digits: 1},
				{name: failedWrites},
			},
			need: 2 * gibibyte, bound: 15 * time.Minute,
			plain:   func(s *site) (values, error) { return plainSlow(s, delay) },
			quorumd: func(s *site) (values, error) { return agentSlow(s, delay) },
		})
	}
	return all
}

// slowDisk mounts a file system on the directory, to make its disk slow.
func (s *site) slowDisk(dir string) (*testbed.Mount, error) {
	if err := testbed.FaultfsUsable(); err != nil {
		return nil, &unavailable{err.Error()}
	}
	back := dir + "-back"
	if err := errors.Join(os.MkdirAll(back, 0o755), os.MkdirAll(dir, 0o755)); err != nil {
		return nil, err
	}
	m, err := testbed.StartFaultfs(s.faultfs, back, dir)
	if err != nil {
		return nil, err
	}
	s.atEnd(func(context.Context) error { return m.Unmount() })
	// A caller that starts processes on this disk registers Clear again afterwards, so that the delay is cleared before
	// the processes are ended.
	s.atEnd(func(context.Context) error { return m.Clear() })
	return m, nil
}

// plainSlow makes n1 the leader, then slows down its disk.
func plainSlow(s *site, delay time.Duration) (values, error) {
	disk, err := s.slowDisk(filepath.Join(s.dir, "n1"))
	if err != nil {
		return nil, err
	}
	members, err := s.etcds("n", 3)
	if err != nil {
		return nil, err
	}
	s.atEnd(func(context.Context) error { return disk.Clear() })
	if err := s.lead(urls(members)); err != nil {
		return nil, err
	}
	return s.measureSlow(disk, delay, urls(members), func() error {
		if err := s.sleep(slowLeads); err != nil {
			return err
		}
		leads, err := s.leader(urls(members))
		if err == nil && leads != 0 {
			err = errors.New("etcd elected a different leader by itself: nothing was measured")
		}
		return err
	})
}

// agentSlow is like plainSlow, for hosts with quorumd.
func agentSlow(s *site, delay time.Duration) (values, error) {
	disk, err := s.slowDisk(filepath.Join(s.dir, "slow"))
	if err != nil {
		return nil, err
	}
	f, err := s.formWith(3, map[policy.Role]int{policy.RoleVoter: 3}, !s.quick,
		func(i int, o *testbed.HostOptions) error {
			if i == 0 {
				o.Disk = filepath.Join(disk.Dir, "disk")
			}
			// the other hosts share one disk with other processes, so the limits are loose
			o.Set["disk.fsyncClear"], o.Set["disk.fsyncWarm"], o.Set["disk.fsyncSlow"] = "20ms", "40ms", "100ms"
			return nil
		})
	if err != nil {
		return nil, err
	}
	s.atEnd(func(context.Context) error { return disk.Clear() })
	endpoints := f.hosts[0].Options.Endpoints
	if err := s.sleep(stepDownRest); err != nil {
		return nil, err
	}
	if err := s.lead(endpoints); err != nil {
		return nil, err
	}
	if err := f.waitIdle(map[policy.Role]int{policy.RoleVoter: 3}, restBound); err != nil {
		return nil, err
	}
	var led time.Duration
	v, err := s.measureSlow(disk, delay, endpoints, func() error {
		began := time.Now()
		err := s.until("another voter to lead", transferBound, func(ctx context.Context) bool {
			led = time.Since(began)
			return leaderOf(ctx, endpoints[1:]) >= 0
		})
		return f.explain(err)
	})
	if err != nil {
		return nil, err
	}
	v[leadFor] = led.Seconds()
	return v, nil
}

// measureSlow measures writes through all members but the first, before the first member's disk becomes slow, and again
// slowSettled after led has returned.
func (s *site) measureSlow(disk *testbed.Mount, delay time.Duration, endpoints []string, led func() error,
) (values, error) {
	load, err := testbed.StartWriteLoad(s.ctx, testbed.LoadOptions{Endpoints: endpoints[1:], Rate: 50})
	if err != nil {
		return nil, err
	}
	s.atEnd(func(context.Context) error { load.Stop(); return nil })
	if err := s.sleep(time.Second); err != nil { // wait until the connections are open
		return nil, err
	}
	before := span{from: time.Now()}
	if err := s.sleep(slowBefore); err != nil {
		return nil, err
	}
	before.to = time.Now()
	if err := errors.Join(disk.Rule("fsync * delay="+delay.String()), led(), s.sleep(slowSettled)); err != nil {
		return nil, err
	}
	later := span{from: time.Now()}
	if err := s.sleep(slowBefore); err != nil {
		return nil, err
	}
	later.to = time.Now()
	report := load.Stop()
	took, _ := latencies(report.Writes, []span{before})
	now, _ := latencies(report.Writes, []span{later})
	if len(took) == 0 || len(now) == 0 {
		return nil, errors.New("no write was acknowledged: nothing was measured")
	}
	was, is := milliseconds(took[len(took)*99/100]), milliseconds(now[len(now)*99/100])
	return values{tailBefore: was, tailLater: is, tailGrown: is / was, failedWrites: float64(report.Failed)}, nil
}

// lead transfers leadership to the first of the etcds.
func (s *site) lead(endpoints []string) error {
	return s.until("n1 to lead", restBound, func(ctx context.Context) bool {
		leads, err := s.leader(endpoints)
		if err != nil || leads == 0 {
			return err == nil
		}
		id, err := ask(ctx, endpoints[0], func(ctx context.Context, c *clientv3.Client) (uint64, error) {
			status, err := c.Status(ctx, endpoints[0])
			if err != nil {
				return 0, err
			}
			return status.Header.MemberId, nil
		})
		if err != nil {
			return false
		}
		_, err = ask(ctx, endpoints[leads], func(ctx context.Context, c *clientv3.Client) (any, error) {
			return c.MoveLeader(ctx, id)
		})
		return err == nil
	})
}
