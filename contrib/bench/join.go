// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// promoteEvery is the interval at which a script tries to promote a learner.
const promoteEvery = time.Second

// joinLoad returns a load on the only voter, because a learner refuses writes.
func joinLoad(url string) testbed.LoadOptions {
	return testbed.LoadOptions{Endpoints: []string{url}, Rate: 100, Timeout: 20 * time.Second}
}

// plainJoin adds a member as a script with etcdctl does.
func plainJoin(s *site, valueSize int) (values, error) {
	voters, err := s.etcds("n", 1)
	if err != nil {
		return nil, err
	}
	voter := voters[0]
	client, err := voter.Client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := s.fill(client, valueSize); err != nil {
		return nil, err
	}
	disk, err := s.otherDisk("n2")
	if err != nil {
		return nil, err
	}
	ports, err := s.ports(2)
	if err != nil {
		return nil, err
	}
	w, err := s.watch(joinLoad(voter.Options.ClientURL))
	if err != nil {
		return nil, err
	}
	w.begin()
	added, err := client.MemberAddAsLearner(s.ctx, []string{loopback(ports[1])})
	if err != nil {
		return nil, err
	}
	joining, err := s.etcdProcess(testbed.MemberOptions{
		Name: "n2", DataDir: filepath.Join(disk, "etcd"), State: "existing", Token: voter.Options.Token,
		ClientURL: loopback(ports[0]), PeerURL: loopback(ports[1]),
		InitialCluster: voter.Options.InitialCluster + ",n2=" + loopback(ports[1]),
	})
	if err != nil {
		return nil, err
	}
	if err := s.promote(client, added.Member.ID, joining); err != nil {
		return nil, err
	}
	if err := s.ready(joining); err != nil {
		return nil, err
	}
	return w.end(s)
}

// promote retries until etcd accepts the promotion.
func (s *site) promote(client *clientv3.Client, id uint64, joining *testbed.Member) error {
	ctx, cancel := context.WithTimeout(s.ctx, joinBound)
	defer cancel()
	tick := time.NewTicker(promoteEvery)
	defer tick.Stop()
	for {
		_, err := client.MemberPromote(ctx, id)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-joining.Done():
			return fmt.Errorf("the learner exited: %s", joining.LogTail(8))
		case <-ctx.Done():
			return fmt.Errorf("the learner was not promoted: %w", err)
		}
	}
}

// agentJoin measures a join by quorumd. A third host is ready to join as well, because quorumd does not leave a cluster
// at two voters.
func agentJoin(s *site, valueSize int) (values, error) {
	f, err := s.fleet(3, func(i int, o *testbed.HostOptions) (err error) {
		o.Shipped = !s.quick
		o.Set["timing.learnerMax"] = joinBound.String()
		if i > 0 {
			o.Disk, err = s.otherDisk(o.Name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := f.bootstrap(); err != nil {
		return nil, err
	}
	client, err := f.etcd(0)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := s.fill(client, valueSize); err != nil {
		return nil, err
	}
	w, err := s.watch(joinLoad(f.hosts[0].Options.ClientURL))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	changes := client.Watch(ctx, record.KeysFor(clusterName).Op())
	if err := f.start(1, 2); err != nil {
		return nil, err
	}
	if err := f.firstOperation(changes, w); err != nil {
		return nil, err
	}
	v, err := w.end(s)
	if err != nil {
		return nil, err
	}
	list, err := client.MemberList(s.ctx)
	if err != nil {
		return nil, err
	}
	voters := 0
	for _, m := range list.Members {
		if !m.IsLearner {
			voters++
		}
	}
	if voters != 2 {
		return nil, fmt.Errorf("the join has ended, and there are %d voters", voters)
	}
	return v, nil
}

// firstOperation starts the measurement when the first operation begins, and returns when that operation ends.
func (f *fleet) firstOperation(changes clientv3.WatchChan, w *watched) error {
	bound := time.NewTimer(joinBound)
	defer bound.Stop()
	for {
		select {
		case answer, ok := <-changes:
			if !ok || answer.Err() != nil {
				return fmt.Errorf("cannot watch for the join: %w", answer.Err())
			}
			for _, e := range answer.Events {
				switch {
				case e.IsCreate():
					w.begin()
				case e.Type == clientv3.EventTypeDelete:
					return nil
				}
			}
		case <-bound.C:
			return fmt.Errorf("no host has joined in %v: %s", joinBound, f.why())
		case <-f.s.ctx.Done():
			return fmt.Errorf("no host has joined: %s: %w", f.why(), context.Cause(f.s.ctx))
		}
	}
}
