// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
)

func TestNoRolloutStopsAnEtcdThatAnotherProgramRuns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		work    Work
		version string
		host    RolloutHost
		want    string // part of the refusal; empty if the rollout may start
	}{
		"an upgrade": {
			WorkCommand, "3.7.3",
			RolloutHost{External: true, Member: true, Manage: true},
			"another program, such as a kubelet, runs etcd on cp1, so only that program can upgrade it",
		},
		"an upgrade, and quorumd only observes": {
			WorkCommand, "3.7.3", RolloutHost{External: true, Member: true}, "so only that program can upgrade it",
		},
		"a restart": {
			WorkRestart, "",
			RolloutHost{External: true, Member: true, Manage: true},
			"so only that program can stop it",
		},
		"a reboot, during which that program stops etcd": {
			WorkReboot, "", RolloutHost{External: true, Member: true, Manage: true}, "",
		},
		"a host without a member": {WorkCommand, "3.7.3", RolloutHost{External: true, Manage: true}, ""},
		"an upgrade of an etcd that quorumd only observes": {
			WorkCommand, "3.7.3", RolloutHost{Member: true}, "quorumd on cp1 only observes",
		},
	} {
		c.host.ID, c.host.Name = "cp1", "cp1"
		_, refusal := RolloutHosts([]RolloutHost{c.host}, nil, c.work, c.version)
		if (refusal != nil) != (c.want != "") || refusal != nil && !strings.Contains(refusal.Text, c.want) {
			t.Errorf("%s: %+v, want %q", name, refusal, c.want)
		}
	}
}
