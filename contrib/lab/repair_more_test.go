//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"golang.org/x/sync/errgroup"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/lab"
)

// TestTwoDeadOfFiveAreReplacedOnlyIfTheyShareAFailureDomain cuts the power of two hosts with unknown failure domains,
// then of two in different domains, and finally of two in the same domain.
func TestTwoDeadOfFiveAreReplacedOnlyIfTheyShareAFailureDomain(t *testing.T) {
	f := newFleet(t, lab.Options{Hosts: 7})
	f.killed = true
	five := func(s lab.Settings) {
		s["cluster"]["voters"], s["cluster"]["standbys"] = 5, 0
		s["repair"] = map[string]any{"dead": grace.String()}
		if name := s["host"]["name"]; name == "n4" || name == "n5" {
			s["host"]["domain"] = "rack-b"
		}
	}
	start := func(hosts []*lab.Host) {
		for _, h := range hosts {
			f.check(f.installManagedWith(h, five))
		}
	}
	start(f.Hosts[:5])
	f.bootstrap(f.Hosts[0])
	f.within(3*bound, "there are five voters", func() bool { return f.has(5, 0) && f.isIdle() })
	start(f.Hosts[5:])
	f.waitIdle()
	before := f.roles()

	apart := f.Hosts[1:3]
	for _, domains := range [][]string{{"", ""}, {"rack-n2", "rack-n3"}} {
		for i, h := range apart {
			f.changeDomain(h, domains[i], five)
		}
		f.check(f.cutPower(apart))
		f.within(grace+bound, fmt.Sprintf("no host replaces two in %q, and reports why", domains), func() bool {
			return f.waitsFor(f.Hosts[5], "COMMON_CAUSE", "2 voters look unhealthy or dead together")
		})
		t.Logf("quorumctl explain on n6:\n%s", f.shell(f.Hosts[5], "quorumctl explain"))
		f.never(10*time.Second, "an operation begins", func() bool { return f.op() != nil })
		f.check(f.powerOn(apart))
		f.waitIdle()
		f.verify(5, 0)
		if now := f.roles(); !maps.Equal(before, now) {
			t.Errorf("the members were %v, and are %v", before, now)
		}
	}

	together := f.Hosts[3:5]
	f.check(f.cutPower(together))
	began := time.Now()
	output := map[string]string{}
	f.within(2*(grace+bound), "five vote without the two of one rack", func() bool {
		f.logReports(output, began)
		return f.has(5, 0) && !slices.ContainsFunc(f.members(), func(m *etcdserverpb.Member) bool {
			return m.Name == together[0].Name || m.Name == together[1].Name
		})
	})
	t.Logf("full strength %.1f s after two of five lost power, with a grace period of %v",
		time.Since(began).Seconds(), grace)
	f.eventually("the second replacement has ended", f.isIdle)
	for _, h := range together {
		f.checkRepairHistory(h)
	}
	f.check(f.powerOn(together))
	f.eventually("the two are spares when they are back", func() bool {
		return f.is(together[0], policy.RoleSpare) && f.is(together[1], policy.RoleSpare)
	})
	f.verify(5, 0)
	f.checkHeld()
}

// changeDomain restarts the agent of a host with a different failure domain, or an unknown one. It waits until all
// hosts report it.
func (f *fleet) changeDomain(h *lab.Host, domain string, change func(lab.Settings)) {
	f.t.Helper()
	s := h.Settings()
	change(s)
	s["host"]["domain"] = domain
	f.check(h.Configure("manage", s))
	f.shell(h, "systemctl restart quorumd")
	f.eventually(fmt.Sprintf("all report that %s is in %q", h.Name, domain), func() bool {
		return !slices.ContainsFunc(f.Hosts, func(o *lab.Host) bool {
			s, ok := f.status(o)
			return !ok || !slices.ContainsFunc(s.Hosts, func(r control.HostRecord) bool {
				return r.Name == h.Name && r.Domain == domain
			})
		})
	})
	f.waitIdle()
}

func (f *fleet) cutPower(hosts []*lab.Host) error {
	return f.forHosts(hosts, func(h *lab.Host) error { return h.PowerLoss(f.t.Context()) })
}

func (f *fleet) powerOn(hosts []*lab.Host) error {
	return f.forHosts(hosts, func(h *lab.Host) error { return h.PowerOn(f.t.Context()) })
}

func (f *fleet) forHosts(hosts []*lab.Host, do func(h *lab.Host) error) error {
	var group errgroup.Group
	for _, h := range hosts {
		group.Go(func() error { return do(h) })
	}
	return group.Wait()
}

// TestAVoterThatAnyHostReachesIsNeverReplaced cuts a follower off from the leader alone, in each direction, and then
// all hosts from each other, each for longer than the grace period. No agent runs on the follower, so it cannot report
// its own state.
func TestAVoterThatAnyHostReachesIsNeverReplaced(t *testing.T) {
	f := formedFleetRunning(t)
	f.enableRepair(func(lab.Settings) {})
	f.waitIdle()
	before := f.roles()
	h, ctx := f.follower(nil), t.Context()
	f.shell(h, "systemctl stop quorumd")
	for _, c := range []struct {
		name string
		do   func(leader *lab.Host) error
	}{
		{"the leader receives nothing from it", func(l *lab.Host) error { return f.Cut(ctx, h, l) }},
		{"it receives nothing from the leader", func(l *lab.Host) error { return f.Cut(ctx, l, h) }},
		{"it and the leader are cut off from each other", func(l *lab.Host) error {
			return errors.Join(f.Cut(ctx, l, h), f.Cut(ctx, h, l))
		}},
		{"all hosts are cut off from each other", func(*lab.Host) error {
			return f.Each(func(o *lab.Host) error { return f.Isolate(ctx, o) })
		}},
	} {
		leader := f.leader()
		if leader == h {
			t.Fatalf("%s leads", h.Name)
		}
		f.check(c.do(leader))
		f.never(grace+replaceBound, "an operation begins while "+c.name, func() bool { return f.op() != nil })
		f.check(f.Heal(ctx))
		f.eventually("writes continue", f.writes)
	}
	f.shell(h, "systemctl start quorumd")
	f.waitIdle()
	f.verify(3, 1)
	if now := f.roles(); !maps.Equal(before, now) {
		t.Errorf("the members were %v, and are %v", before, now)
	}
}

// TestTheStandbyReplacesADeadVoterOfAGigabyteAsFastAsAnEmptyOne fills the database first.
func TestTheStandbyReplacesADeadVoterOfAGigabyteAsFastAsAnEmptyOne(t *testing.T) {
	f := formedFleetRunning(t)
	f.enableRepair(func(lab.Settings) {})
	f.fill(11_000, 91_000)
	f.waitIdle()
	standby, dead := f.role(policy.RoleStandby)[0], f.follower(nil)
	f.cutPowerAndWaitReplaced(dead)
	f.eventually(standby.Name+", which was the standby, votes", func() bool { return f.is(standby, policy.RoleVoter) })
	f.within(3*bound, "the spare has copied the database, and is the standby", func() bool {
		return f.has(3, 1) && f.isIdle()
	})
}

// fill writes that many values of the given size.
func (f *fleet) fill(writes int64, size int) {
	f.t.Helper()
	client, err := f.client()
	f.check(err)
	var next atomic.Int64
	group, ctx := errgroup.WithContext(f.t.Context())
	value, began := strings.Repeat("v", size), time.Now()
	for range 8 {
		group.Go(func() error {
			for n := next.Add(1); n <= writes; n = next.Add(1) {
				ctx, cancel := context.WithTimeout(ctx, bound)
				_, err := client.Put(ctx, fmt.Sprintf("fill/%06d", n), value)
				cancel()
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	f.check(group.Wait())
	f.t.Logf("%6.1f s: a database of %d MiB", time.Since(began).Seconds(), int(writes)*size>>20)
}
