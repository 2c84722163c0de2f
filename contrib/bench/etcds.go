// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/quorumd/quorumd/contrib/testbed"
)

const (
	fillWrites = 11_000 // more than etcd keeps in its Raft log, so that a learner receives the whole database
	fillers    = 16
	quota      = 4 * gibibyte // quota of etcd's database in bytes

	// readyBound is how long an etcd may take to answer, and joinBound how long a join may take.
	readyBound = time.Minute
	joinBound  = 10 * time.Minute
	// afterwards is how long writes are watched after the measured event.
	afterwards = 3 * time.Second
)

// etcds starts n members of one cluster, without quorumd, and returns when each answers.
func (s *site) etcds(prefix string, n int) ([]*testbed.Member, error) {
	ports, err := s.ports(2 * n)
	if err != nil {
		return nil, err
	}
	var initial []string
	for i := range n {
		initial = append(initial, fmt.Sprintf("%s%d=%s", prefix, i+1, loopback(ports[2*i+1])))
	}
	var members []*testbed.Member
	for i := range n {
		name := fmt.Sprintf("%s%d", prefix, i+1)
		m, err := s.etcdProcess(testbed.MemberOptions{
			Name: name, ClientURL: loopback(ports[2*i]), PeerURL: loopback(ports[2*i+1]),
			InitialCluster: strings.Join(initial, ","), Token: fmt.Sprintf("bench-%d", ports[0]),
		})
		if err != nil {
			return nil, err
		}
		members = append(members, m)
	}
	for _, m := range members {
		if err := s.ready(m); err != nil {
			return nil, err
		}
	}
	return members, nil
}

// etcdProcess starts one etcd.
func (s *site) etcdProcess(o testbed.MemberOptions) (*testbed.Member, error) {
	o.Binary, o.Dir = s.etcd, filepath.Join(s.dir, o.Name)
	o.Extra = append(o.Extra, fmt.Sprintf("--quota-backend-bytes=%d", quota))
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	m, err := testbed.StartMember(context.WithoutCancel(s.ctx), o)
	if err != nil {
		return nil, err
	}
	s.atEnd(func(ctx context.Context) error {
		_ = m.Kill9() // the process may have exited
		if err := m.Wait(ctx); ctx.Err() != nil {
			return fmt.Errorf("%s does not exit: %w", o.Name, err)
		}
		return nil
	})
	return m, nil
}

func (s *site) ready(m *testbed.Member) error {
	ctx, cancel := context.WithTimeout(s.ctx, readyBound)
	defer cancel()
	return m.WaitReady(ctx)
}

func loopback(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }

func urls(members []*testbed.Member) []string {
	var all []string
	for _, m := range members {
		all = append(all, m.Options.ClientURL)
	}
	return all
}

// fill writes fillWrites values of the given size in bytes; none if the size is 0.
func (s *site) fill(client *clientv3.Client, valueSize int) error {
	if valueSize == 0 {
		return nil
	}
	began, value := time.Now(), strings.Repeat("v", valueSize)
	var next atomic.Int64
	group, ctx := errgroup.WithContext(s.ctx)
	for range fillers {
		group.Go(func() error {
			for n := next.Add(1); n <= fillWrites; n = next.Add(1) {
				if _, err := client.Put(ctx, fmt.Sprintf("fill/%06d", n), value); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("cannot fill the database: %w", err)
	}
	s.progress("%s: a database of %d MiB written in %.0f s", s.row, fillWrites*valueSize/mebibyte,
		time.Since(began).Seconds())
	return nil
}

// watched is a measured load on the cluster, and the same load on a bystander etcd on the same disk.
type watched struct {
	load, idle *testbed.WriteLoad
	from       time.Time
}

// watch starts two write loads: one on the measured endpoints, and one on a bystander etcd that the measured event does
// not affect.
func (s *site) watch(o testbed.LoadOptions) (*watched, error) {
	bystander, err := s.etcds("idle", 1)
	if err != nil {
		return nil, fmt.Errorf("the bystander etcd: %w", err)
	}
	w := &watched{}
	if w.load, err = testbed.StartWriteLoad(s.ctx, o); err != nil {
		return nil, err
	}
	s.atEnd(func(context.Context) error { w.load.Stop(); return nil })
	if w.idle, err = testbed.StartWriteLoad(s.ctx, testbed.LoadOptions{
		Endpoints: urls(bystander), Rate: o.Rate,
	}); err != nil {
		return nil, err
	}
	s.atEnd(func(context.Context) error { w.idle.Stop(); return nil })
	return w, s.sleep(time.Second) // wait until the connections are open
}

// begin starts the measurement.
func (w *watched) begin() { w.from = time.Now() }

// end returns the results since begin. It first waits for the time in the constant afterwards. Writes in that time
// count, but the figure "taken" does not include it.
func (w *watched) end(s *site) (values, error) {
	ended := time.Now()
	if err := s.sleep(afterwards); err != nil {
		return nil, err
	}
	to := time.Now()
	report, idle := w.load.Stop(), w.idle.Stop()
	v := values{
		worstGap:     milliseconds(report.GapWithin(w.from, to)),
		machineGap:   milliseconds(idle.GapWithin(w.from, to)),
		taken:        ended.Sub(w.from).Seconds(),
		failedWrites: 0, sentTwice: 0, allWrites: 0,
	}
	for _, write := range report.Writes {
		if write.Sent.Before(w.from) || write.Sent.After(to) {
			continue
		}
		v[allWrites]++
		switch {
		case write.Err != nil:
			v[failedWrites]++
		case write.Tries > 1:
			v[sentTwice]++
		}
	}
	if v[allWrites] == 0 {
		return nil, errors.New("no write was sent: nothing was measured")
	}
	return v, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
