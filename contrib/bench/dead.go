// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed"
)

const (
	// deadFor is the shortest grace period that the default times allow; quickDeadFor is the shortest that any
	// configuration allows.
	deadFor      = 2 * time.Minute
	quickDeadFor = 30 * time.Second
	// reportedDead is how long it may take after the grace period until every host has reported the voter as dead and
	// has then confirmed it.
	reportedDead = 15 * time.Second
	// etcdPublishes is how long etcd 3.6 waits for the response to the proposal that publishes its name. It serves
	// clients only afterwards. A learner loses that response if it proposes before its first snapshot has arrived.
	etcdPublishes = 7 * time.Second
	// replacedBound is how long the row waits for a replacement after the grace period.
	replacedBound = 5 * time.Minute
	// plainDeadFor is how long the cluster without quorumd is watched. Its writes resume within seconds, or never.
	plainDeadFor = 30 * time.Second
)

// deadRows returns rows for a standby and a spare that replace a dead voter, with a small database and with one of 1
// GB. The spare has to copy the database first; the standby already has it.
func deadRows() []row {
	var all []row
	for _, size := range []struct {
		name, about string
		valueSize   int // bytes of each of the fillWrites writes
		need        uint64
		bound       time.Duration
	}{
		{"", "", 0, 2 * gibibyte, 20 * time.Minute},
		{"-1GB", " with a 1 GB database", 91_000, 16 * gibibyte, 40 * time.Minute},
	} {
		for _, ready := range []policy.Role{policy.RoleStandby, policy.RoleSpare} {
			all = append(all, row{
				name: "dead/" + string(ready) + size.name,
				about: fmt.Sprintf("the leader of three voters%s and its agent are killed, under 50 writes/s, each "+
					"retried for 5 s", size.about),
				plainly: fmt.Sprintf("no intervention; watched for %v", plainDeadFor),
				ours: fmt.Sprintf("a %s replaces it after a grace period of %v, or of %v with -quick", ready, deadFor,
					quickDeadFor),
				figures: []figure{
					{name: worstGap, unit: "ms"},
					{name: machineGap, unit: "ms", basis: true},
					{name: failedWrites},
					{name: pastGrace, unit: "s", digits: 1, ours: true},
					{name: pastAllowed, unit: "s", digits: 1, ours: true},
					{name: votersLost},
				},
				need: size.need, bound: size.bound,
				plain:   func(s *site) (values, error) { return plainDeath(s, size.valueSize) },
				quorumd: func(s *site) (values, error) { return agentDeath(s, ready, size.valueSize) },
			})
		}
	}
	return all
}

// plainDeath kills the leader of three and watches the writes.
func plainDeath(s *site, valueSize int) (values, error) {
	members, err := s.etcds("n", 3)
	if err != nil {
		return nil, err
	}
	client, err := members[0].Client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := s.fill(client, valueSize); err != nil {
		return nil, err
	}
	w, err := s.watch(restartLoad(urls(members)))
	if err != nil {
		return nil, err
	}
	leads, err := s.leader(urls(members))
	if err != nil {
		return nil, err
	}
	w.begin()
	if err := members[leads].Kill9(); err != nil {
		return nil, err
	}
	if err := s.sleep(plainDeadFor); err != nil {
		return nil, err
	}
	v, err := w.end(s)
	if err != nil {
		return nil, err
	}
	v[votersLost] = float64(3 - s.serving(urls(members)))
	return v, nil
}

// agentDeath kills the leader and its agent, and waits until another host has replaced the leader.
func agentDeath(s *site, ready policy.Role, valueSize int) (values, error) {
	grace := deadFor
	if s.quick {
		grace = quickDeadFor
	}
	roles := map[policy.Role]int{policy.RoleVoter: 3, ready: 1}
	f, err := s.formWith(4, roles, !s.quick, func(i int, o *testbed.HostOptions) (err error) {
		o.Set["cluster.voters"], o.Set["repair.dead"] = "3", grace.String()
		if ready == policy.RoleStandby {
			o.Set["cluster.standbys"] = "1"
		}
		if i == 3 && valueSize > 0 {
			o.Disk, err = s.otherDisk(o.Name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	client, err := f.etcd(0)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := errors.Join(s.fill(client, valueSize), f.waitIdle(roles, restBound)); err != nil {
		return nil, err
	}
	leads, err := s.leader(f.hosts[0].Options.Endpoints)
	if err != nil {
		return nil, err
	}
	w, err := s.watch(restartLoad(f.hosts[0].Options.Endpoints))
	if err != nil {
		return nil, err
	}
	dead := f.hosts[leads]
	w.begin()
	if err := dead.KillAgent(s.ctx); err != nil {
		return nil, err
	}
	if _, err := dead.KillEtcd(s.ctx); err != nil {
		return nil, err
	}
	if err := f.waitReplaced(dead, grace+replacedBound); err != nil {
		return nil, err
	}
	v, err := w.end(s)
	if err != nil {
		return nil, err
	}
	v[pastGrace] = v[taken] - grace.Seconds()
	c, err := config.Load(f.hosts[0].ConfigPath())
	if err != nil {
		return nil, err
	}
	v[pastAllowed] = allowed(c.Timing, ready).Seconds()
	v[votersLost] = float64(3 - s.serving(f.hosts[0].Options.Endpoints))
	return v, nil
}

// allowed returns how long after the grace period a host may take to become a voter with these times, not counting the
// time to copy the database. A standby is promoted at once. A spare is added when the removal has settled; the next
// round of the loop observes that its etcd serves; it is then watched for as long as any learner, and promoted in the
// following round.
func allowed(t config.Timing, ready policy.Role) time.Duration {
	if ready == policy.RoleStandby {
		return reportedDead
	}
	return reportedDead + t.Settle + etcdPublishes + t.Interval + max(t.PromoteStable, t.SteadyLag) + t.Interval
}

// waitReplaced waits until three members vote and answer, none of them on the dead host.
func (f *fleet) waitReplaced(dead *testbed.Host, limit time.Duration) error {
	return f.explain(f.s.until("another host to replace "+dead.Options.Name, limit,
		func(ctx context.Context) bool {
			voters := 0
			for _, h := range f.hosts {
				if h == dead {
					continue
				}
				list, err := listed(ctx, h.Options.ClientURL)
				if err != nil {
					continue // the host has no member yet, or its member does not answer a linearizable read
				}
				for _, m := range list.Members {
					if m.Name == dead.Options.Name {
						return false
					}
					if m.Name == h.Options.Name && !m.IsLearner {
						voters++
					}
				}
			}
			return voters == 3
		}))
}

// leader returns the index of the leader among the etcds.
func (s *site) leader(endpoints []string) (leads int, err error) {
	err = s.until("an etcd to lead", readyBound, func(ctx context.Context) bool {
		leads = leaderOf(ctx, endpoints)
		return leads >= 0
	})
	return leads, err
}

// leaderOf returns the index of the etcd that reports itself as leader now, or -1 if none does.
func leaderOf(ctx context.Context, endpoints []string) int {
	for i, url := range endpoints {
		status, err := ask(ctx, url, func(ctx context.Context, c *clientv3.Client) (*clientv3.StatusResponse, error) {
			return c.Status(ctx, url)
		})
		if err == nil && status.Leader == status.Header.MemberId {
			return i
		}
	}
	return -1
}

// serving returns how many of the etcds answer a linearizable read.
func (s *site) serving(endpoints []string) (n int) {
	for _, url := range endpoints {
		if _, err := listed(s.ctx, url); err == nil {
			n++
		}
	}
	return n
}

// listed returns the member list of one etcd after a linearizable read. A learner refuses that read.
func listed(ctx context.Context, url string) (*clientv3.MemberListResponse, error) {
	return ask(ctx, url, func(ctx context.Context, c *clientv3.Client) (*clientv3.MemberListResponse, error) {
		if _, err := c.Get(ctx, "load/"); err != nil {
			return nil, err
		}
		return c.MemberList(ctx)
	})
}

// ask sends one query to one etcd, over a separate connection.
func ask[T any](ctx context.Context, url string, do func(context.Context, *clientv3.Client) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, Logger: zap.NewNop()})
	if err != nil {
		var none T
		return none, err
	}
	defer client.Close()
	return do(ctx, client)
}
