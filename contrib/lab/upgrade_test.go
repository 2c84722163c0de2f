//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"maps"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/lab"
	"github.com/quorumd/quorumd/contrib/testbed"
)

func TestAnUpgradeOfAllHostsUnderLoadFailsNoWrite(t *testing.T) {
	f := formedFleetRunning(t)
	next := packageFile(t, "next")
	const before, after = "0.0.1", "0.0.2"
	pids, members := f.etcdPIDs(), f.roles()
	var endpoints []string
	for _, h := range f.role(policy.RoleVoter) {
		endpoints = append(endpoints, h.ClientURL())
		f.runsVersion(h, before)
	}
	load, err := testbed.StartWriteLoad(t.Context(), testbed.LoadOptions{Endpoints: endpoints, Rate: 50})
	f.check(err)
	defer load.Stop()
	for _, h := range f.Hosts {
		began := time.Now()
		f.check(h.Install(t.Context(), next))
		f.runsVersion(h, after)
		t.Logf("%s was upgraded in %.1f s", h.Name, time.Since(began).Seconds())
	}
	f.verify(3, 1)
	report := load.Stop()
	t.Logf("%d writes acknowledged, %d failed, longest gap %v", report.Acked, report.Failed, report.LongestGap)
	if report.Failed != 0 || report.Acked == 0 {
		t.Errorf("%d writes failed and %d were acknowledged, want none and some", report.Failed, report.Acked)
	}
	if now := f.etcdPIDs(); !maps.Equal(pids, now) {
		t.Errorf("the processes of etcd were %v, and are %v", pids, now)
	}
	if now := f.roles(); !maps.Equal(members, now) {
		t.Errorf("the members were %v, and are %v", members, now)
	}
}

// runsVersion waits until the agent of a host has that version and has observed the cluster.
func (f *fleet) runsVersion(h *lab.Host, version string) {
	f.t.Helper()
	f.eventually(h.Name+" runs quorumd "+version, func() bool {
		s, ok := f.status(h)
		return ok && s.Host.Version == version && s.Cluster.Reachable
	})
}
