//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/contrib/lab"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestWritesGoOnWhenTheLeaderRebootsAndAfterARebootOfAllTheClusterReturns types "reboot" on the leader while
// a client writes, and then on all hosts in the same second. Nobody asked for the host's turn in time, so a write that was on its
// way through it may fail; all others go on.
func TestWritesGoOnWhenTheLeaderRebootsAndAfterARebootOfAllTheClusterReturns(t *testing.T) {
	f := standingFleet(t)
	f.killed = true
	members := f.roles()
	leader := f.leader()
	report := f.under(func([]*lab.Host) { f.check(leader.Reboot(t.Context())) })
	t.Logf("the leader rebooted: %d writes acknowledged, %d failed, longest gap %v", report.Acked, report.Failed, report.LongestGap)
	if report.LongestGap > 3*time.Second { // an election takes less
		t.Errorf("nothing was written for %v", report.LongestGap)
	}
	f.rest()

	boots := f.boots()
	f.check(f.Each(func(h *lab.Host) error { return h.Reboot(t.Context()) }))
	f.verify(3, 1)
	f.rest()
	for name, boot := range f.boots() {
		if boot == boots[name] {
			t.Errorf("%s has not rebooted", name)
		}
	}
	if now := f.roles(); len(now) != len(members) {
		t.Errorf("the members were %v, and are %v", members, now)
	}
}

// under does something to the voters while a client writes, and waits until all of them are back. It gives what became of the
// writes.
func (f *fleet) under(do func(voters []*lab.Host)) testbed.LoadReport {
	f.t.Helper()
	voters := f.role(control.RoleVoter)
	var endpoints []string
	for _, h := range voters {
		endpoints = append(endpoints, h.ClientURL())
	}
	load, err := testbed.StartWriteLoad(f.t.Context(), testbed.LoadOptions{
		Endpoints: endpoints, Rate: 50, Retry: true, Prefix: fmt.Sprintf("load/%d/", time.Now().UnixNano()),
	})
	f.check(err)
	defer load.Stop()
	do(voters)
	f.eventually("all voters are back", func() bool { return f.allServe(voters) })
	return load.Stop()
}

func (f *fleet) allServe(hosts []*lab.Host) bool {
	serve := make([]bool, len(hosts))
	var all sync.WaitGroup
	for i, h := range hosts {
		all.Go(func() { serve[i] = f.serves(h) })
	}
	all.Wait()
	return !slices.Contains(serve, false)
}

// rest waits until nothing is in flight and every agent is content.
func (f *fleet) rest() {
	f.t.Helper()
	f.eventually("all are at rest", func() bool {
		for _, h := range f.Hosts {
			if !f.names(h, "AT_REST") && !f.names(h, "TARGET_MET") {
				return false
			}
		}
		return f.atRest()
	})
}

// boots gives the boot of every host.
func (f *fleet) boots() map[string]string {
	f.t.Helper()
	boots := map[string]string{}
	for _, h := range f.Hosts {
		boot, err := h.BootID(f.t.Context())
		f.check(err)
		boots[h.Name] = boot
	}
	return boots
}
