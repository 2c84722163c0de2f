// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed"
)

const (
	// changedBound is how long one change may take.
	changedBound = 10 * time.Minute
	// quietFor is how long the writes are watched before a change, to compare the worst write gaps before and during
	// the change.
	quietFor = 15 * time.Second
)

// planned is a planned change of a cluster, made by hand or by quorumd.
type planned struct {
	name, about    string
	voters, spares int // numbers of hosts before the change
	plainly, ours  string

	byHand func(p *plain) error
	// prepare configures what the change needs, before anything is measured; nil if there is nothing.
	prepare func(f *fleet) error
	asked   func(f *fleet) error
	target  int // number of voters after the change
}

// changes returns rows for planned changes of clusters with three and five voters.
func changes() []row {
	all := []planned{
		{
			name: "resize/3-5", about: "three voters become five", voters: 3, spares: 2, target: 5,
			plainly: "member add --learner, start etcd, member promote every second until it is accepted, twice",
			ours:    "quorumctl cluster resize 5",
			byHand: func(p *plain) error {
				if err := p.joins(); err != nil {
					return err
				}
				return p.joins()
			},
			asked: func(f *fleet) error { return f.resize(5) },
		},
		{
			name: "resize/5-3", about: "five voters become three", voters: 5, target: 3,
			plainly: "member remove of two followers, retried until it is accepted",
			ours:    "quorumctl cluster resize 3",
			byHand: func(p *plain) error {
				leads, err := p.s.leader(urls(p.members))
				if err != nil {
					return err
				}
				if err := p.leaves((leads + 1) % 5); err != nil {
					return err
				}
				return p.leaves((leads + 2) % 5)
			},
			asked: func(f *fleet) error { return f.resize(3) },
		},
	}
	for _, n := range []int{3, 5} {
		all = append(all, planned{
			name: fmt.Sprintf("retire/%d", n), voters: n, spares: 1, target: n,
			about:   fmt.Sprintf("the leader of %d voters is replaced by a new member and leaves", n),
			plainly: "member add --learner, start etcd, member promote, member remove of the leader, retried",
			ours:    "quorumctl retire HOST",
			byHand: func(p *plain) error {
				if err := p.joins(); err != nil {
					return err
				}
				leads, err := p.s.leader(urls(p.members))
				if err != nil {
					return err
				}
				return p.leaves(leads)
			},
			asked: (*fleet).retireLeader,
		}, planned{
			name: fmt.Sprintf("leader/%d", n), voters: n, target: n,
			about:   fmt.Sprintf("leadership of %d voters is transferred", n),
			plainly: "move-leader to the next member",
			ours:    "quorumctl leader transfer HOST",
			byHand:  (*plain).moveLeader,
			asked:   (*fleet).transferLeader,
		}, planned{
			name: fmt.Sprintf("readdress/%d", n), voters: n, target: n,
			about:   fmt.Sprintf("the peer URLs of %d voters change", n),
			plainly: "member update, stop etcd, start it at the new URL and wait until it answers, for each member",
			ours:    "quorumctl readdress --all",
			byHand:  (*plain).readdress,
			prepare: (*fleet).moveURLs,
			asked:   (*fleet).readdress,
		})
	}
	var rows []row
	for _, c := range all {
		n := max(c.voters+c.spares, c.target)
		rows = append(rows, row{
			name: c.name, about: c.about + ", under 50 writes/s, each retried for 5 s",
			plainly: c.plainly, ours: c.ours,
			figures: []figure{
				{name: worstGap, unit: "ms"},
				{name: quietGap, unit: "ms", basis: true},
				{name: machineGap, unit: "ms", basis: true},
				{name: failedWrites},
				{name: sentTwice},
				{name: allWrites, basis: true},
				{name: taken, unit: "s", digits: 1},
			},
			need: uint64(n) * gibibyte / 2, bound: time.Duration(8+2*n) * time.Minute,
			plain: c.plain, quorumd: c.quorumd,
		})
	}
	return rows
}

// plain is a cluster that is changed by hand.
type plain struct {
	s       *site
	members []*testbed.Member
	ports   []int // ports of the members that may still join
}

// plain measures the change made by hand.
func (c planned) plain(s *site) (values, error) {
	members, err := s.etcds("n", c.voters)
	if err != nil {
		return nil, err
	}
	ports, err := s.ports(2 * c.spares)
	if err != nil {
		return nil, err
	}
	endpoints := urls(members)
	for i := range c.spares {
		endpoints = append(endpoints, loopback(ports[2*i]))
	}
	return s.watchChange(endpoints, func() error { return c.byHand(&plain{s, members, ports}) })
}

// quorumd measures the change made by quorumd.
func (c planned) quorumd(s *site) (values, error) {
	roles := map[policy.Role]int{policy.RoleVoter: c.voters}
	if c.spares > 0 {
		roles[policy.RoleSpare] = c.spares
	}
	f, err := s.formWith(c.voters+c.spares, roles, !s.quick, func(_ int, o *testbed.HostOptions) error {
		o.Set["cluster.voters"] = fmt.Sprint(c.voters)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if c.prepare != nil {
		if err := c.prepare(f); err != nil {
			return nil, err
		}
	}
	return s.watchChange(f.hosts[0].Options.Endpoints, func() error { return c.asked(f) })
}

// watchChange measures the writes during a change, and before it for comparison.
func (s *site) watchChange(endpoints []string, do func() error) (values, error) {
	w, err := s.watch(restartLoad(endpoints))
	if err != nil {
		return nil, err
	}
	quiet := time.Now()
	if err := s.sleep(quietFor); err != nil {
		return nil, err
	}
	w.begin()
	if err := do(); err != nil {
		return nil, err
	}
	v, err := w.end(s)
	if err != nil {
		return nil, err
	}
	v[quietGap] = milliseconds(w.load.Report().GapWithin(quiet, w.from))
	return v, nil
}

// joins adds a member as a learner, starts it and promotes it.
func (p *plain) joins() error {
	client, err := p.members[0].Client()
	if err != nil {
		return err
	}
	defer client.Close()
	if len(p.ports) < 2 {
		return errors.New("no ports are left for a further member")
	}
	clientPort, peer := p.ports[0], loopback(p.ports[1])
	p.ports = p.ports[2:]
	added, err := client.MemberAddAsLearner(p.s.ctx, []string{peer})
	if err != nil {
		return err
	}
	name, initial := fmt.Sprintf("n%d", len(p.members)+1), ""
	for _, m := range p.members {
		initial += m.Options.Name + "=" + m.Options.PeerURL + ","
	}
	joining, err := p.s.etcdProcess(testbed.MemberOptions{
		Name: name, State: "existing", Token: p.members[0].Options.Token,
		ClientURL: loopback(clientPort), PeerURL: peer, InitialCluster: initial + name + "=" + peer,
	})
	if err != nil {
		return err
	}
	p.members = append(p.members, joining)
	if err := p.s.promote(client, added.Member.ID, joining); err != nil {
		return err
	}
	return p.s.ready(joining)
}

// leaves removes a member, and retries every second while etcd refuses, for example because the connections to a new
// member are too young. The removed etcd exits by itself.
func (p *plain) leaves(i int) error {
	other, err := p.members[(i+1)%len(p.members)].Client()
	if err != nil {
		return err
	}
	defer other.Close()
	list, err := other.MemberList(p.s.ctx)
	if err != nil {
		return err
	}
	for _, m := range list.Members {
		if m.Name == p.members[i].Options.Name {
			return p.s.until("etcd to remove "+m.Name, changedBound, func(ctx context.Context) bool {
				_, err := other.MemberRemove(ctx, m.ID)
				if err != nil {
					_ = p.s.sleep(promoteEvery)
				}
				return err == nil
			})
		}
	}
	return fmt.Errorf("%s is not a member", p.members[i].Options.Name)
}

// moveLeader transfers leadership to the next member.
func (p *plain) moveLeader() error {
	leads, err := p.s.leader(urls(p.members))
	if err != nil {
		return err
	}
	leader, err := p.members[leads].Client()
	if err != nil {
		return err
	}
	defer leader.Close()
	next := p.members[(leads+1)%len(p.members)]
	status, err := leader.Status(p.s.ctx, next.Options.ClientURL)
	if err != nil {
		return err
	}
	_, err = leader.MoveLeader(p.s.ctx, status.Header.MemberId)
	return err
}

// readdress changes the peer URL of one member after another, and waits until each answers.
func (p *plain) readdress() error {
	ports, err := p.s.ports(len(p.members))
	if err != nil {
		return err
	}
	for i, m := range p.members {
		if err := p.move(m, p.members[(i+1)%len(p.members)], loopback(ports[i])); err != nil {
			return err
		}
	}
	return nil
}

// move changes the peer URL of a member, through another member.
func (p *plain) move(m, other *testbed.Member, url string) error {
	client, err := other.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	status, err := client.Status(p.s.ctx, m.Options.ClientURL)
	if err != nil {
		return err
	}
	if _, err := client.MemberUpdate(p.s.ctx, status.Header.MemberId, []string{url}); err != nil {
		return err
	}
	if err := m.Terminate(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(p.s.ctx, readyBound)
	_ = m.Wait(ctx) // Wait returns an error, because the signal ends the process
	cancel()
	m.Options.PeerURL = url
	if err := m.Restart(context.WithoutCancel(p.s.ctx)); err != nil {
		return err
	}
	return p.s.ready(m)
}

// moveURLs configures another peer URL for each host. Etcd keeps running.
func (f *fleet) moveURLs() error {
	ports, err := f.s.ports(len(f.hosts))
	if err != nil {
		return err
	}
	for i, h := range f.hosts {
		ctx, cancel := context.WithTimeout(f.s.ctx, readyBound)
		err := h.StopAgent(ctx)
		cancel()
		h.Options.PeerURL = loopback(ports[i])
		if err := errors.Join(err, h.WriteConfig()); err != nil {
			return err
		}
		if err := h.Start(); err != nil {
			return err
		}
	}
	return f.explain(f.s.until("a readdress to include every host", changedBound, func(ctx context.Context) bool {
		r, err := f.hosts[0].Client.StartRollout(ctx, control.RolloutRequest{
			Work: policy.WorkReaddress, Reason: "bench", DryRun: true,
		})
		return err == nil && len(r.Hosts) == len(f.hosts)
	}))
}

// readdress changes all peer URLs with a rollout.
func (f *fleet) readdress() error { return f.rollOut(policy.WorkReaddress) }

// resize resizes the cluster and waits until it has that many voters.
func (f *fleet) resize(voters int) error {
	ctx, cancel := context.WithTimeout(f.s.ctx, askBound)
	defer cancel()
	_, err := f.hosts[0].Client.Resize(ctx, control.ResizeRequest{Voters: voters, Reason: "bench"})
	if err != nil {
		return err
	}
	return f.waitChanged(fmt.Sprintf("the cluster to have %d voters", voters), func(s control.Status) bool {
		return s.Cluster.Voters == voters
	})
}

// retireLeader retires the leader's host, and waits until every host reports that the retired host has left.
func (f *fleet) retireLeader() error {
	leads, err := f.s.leader(f.hosts[0].Options.Endpoints)
	if err != nil {
		return err
	}
	leader, by := f.hosts[leads].Options.Name, f.hosts[(leads+1)%len(f.hosts)]
	ctx, cancel := context.WithTimeout(f.s.ctx, askBound)
	defer cancel()
	if _, err := by.Client.Retire(ctx, control.RetireRequest{Host: leader, Reason: "bench"}); err != nil {
		return err
	}
	return f.waitChanged(leader+" to leave", func(s control.Status) bool {
		return slices.ContainsFunc(s.Retired, func(r control.Retired) bool {
			return r.Name == leader && r.State == control.RetiredLeft
		})
	})
}

// transferLeader transfers leadership to the next host, and waits until that host is the leader.
func (f *fleet) transferLeader() error {
	endpoints := f.hosts[0].Options.Endpoints
	leads, err := f.s.leader(endpoints)
	if err != nil {
		return err
	}
	next := (leads + 1) % len(f.hosts)
	ctx, cancel := context.WithTimeout(f.s.ctx, askBound)
	defer cancel()
	asked := control.TransferRequest{Host: f.hosts[next].Options.Name, Reason: "bench"}
	if _, err := f.hosts[leads].Client.TransferLeadership(ctx, asked); err != nil {
		return err
	}
	return f.explain(f.s.until(asked.Host+" to lead", changedBound, func(ctx context.Context) bool {
		return leaderOf(ctx, endpoints) == next
	}))
}

// waitChanged waits until every host reports that the change is done and that no operation is in flight.
func (f *fleet) waitChanged(what string, changed func(control.Status) bool) error {
	return f.explain(f.s.until(what, changedBound, func(ctx context.Context) bool {
		for _, h := range f.hosts {
			status, err := f.status(ctx, h)
			if err != nil || status.Op != nil || !changed(status) {
				return false
			}
		}
		return true
	}))
}
