//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/lab"
)

// manualEnvironment is the environment that an operator writes for a cluster according to the distribution's
// documentation.
const manualEnvironment = `ETCD_INITIAL_CLUSTER="%s"
ETCD_INITIAL_CLUSTER_STATE="new"
ETCD_INITIAL_CLUSTER_TOKEN="by-hand"
ETCD_INITIAL_ADVERTISE_PEER_URLS="%[2]s"
ETCD_LISTEN_PEER_URLS="%[2]s"
ETCD_ADVERTISE_CLIENT_URLS="%[3]s"
ETCD_LISTEN_CLIENT_URLS="%[3]s,http://127.0.0.1:2379"
`

func TestAManuallyBuiltClusterIsAdoptedWithoutARestart(t *testing.T) {
	f := newFleet(t, lab.Options{Hosts: 4})
	voters, spare := f.Hosts[:3], f.Hosts[3]
	f.bootstrapManually(voters)
	pids, members := f.etcdPIDs(), f.roles()

	f.check(f.Each(func(h *lab.Host) error { return h.Install(t.Context(), f.deb) }))
	if now := f.etcdPIDs(); !maps.Equal(pids, now) {
		t.Errorf("the package changed the processes of etcd: they were %v, and are %v", pids, now)
	}
	f.runAll("observe")
	f.eventually("the observing agents see three voters and a spare", func() bool {
		return len(f.role(policy.RoleVoter)) == 3 && f.is(spare, policy.RoleSpare)
	})
	for _, h := range voters {
		f.checkView(h)
	}
	t.Logf("quorumctl status on n1, mode observe:\n%s", f.shell(voters[0], "quorumctl status"))
	if steps := f.steps(); len(steps) > 0 {
		t.Errorf("the observing agents took steps: %v", steps)
	}

	f.runAll("manage")
	f.eventually("the voters are idle", func() bool {
		for _, h := range voters {
			if !f.hasReason(h, "IDLE") {
				return false
			}
		}
		return f.hasReason(spare, "TARGET_MET")
	})
	f.never(10*time.Second, "a host acts", func() bool { return !f.isIdle() })
	if steps := f.steps(); len(steps) > 0 {
		t.Errorf("the agents took steps, although the target is met: %v", steps)
	}
	if now := f.etcdPIDs(); !maps.Equal(pids, now) {
		t.Errorf("the processes of etcd were %v, and are %v", pids, now)
	}
	if now := f.roles(); !maps.Equal(members, now) {
		t.Errorf("the members were %v, and are %v", members, now)
	}

	f.check(voters[1].Reboot(t.Context()))
	f.eventually("a voter that reboots comes back as it was", func() bool {
		return f.serves(voters[1]) && f.hasReason(voters[1], "IDLE")
	})
	if now := f.roles(); !maps.Equal(members, now) {
		t.Errorf("after a reboot, the members were %v, and are %v", members, now)
	}
}

// bootstrapManually bootstraps a cluster on these hosts without quorumd.
func (f *fleet) bootstrapManually(hosts []*lab.Host) {
	f.t.Helper()
	var peers []string
	for _, h := range hosts {
		peers = append(peers, h.Name+"="+h.PeerURL())
	}
	f.check(f.Each(func(h *lab.Host) error {
		if h.Name > hosts[len(hosts)-1].Name {
			return nil
		}
		text := fmt.Sprintf(manualEnvironment, strings.Join(peers, ","), h.PeerURL(), h.ClientURL())
		if err := h.Write("/etc/default/etcd", text, 0o644); err != nil {
			return err
		}
		_, err := h.Run(f.t.Context(), "systemctl", "enable", "--now", "etcd")
		return err
	}))
	f.eventually("there is a cluster that was built by hand", func() bool { return f.has(len(hosts), 0) })
}

// runAll runs quorumd on all hosts in a mode. The cluster already meets the target.
func (f *fleet) runAll(mode string) {
	f.t.Helper()
	f.check(f.Each(func(h *lab.Host) error {
		s := h.Settings()
		s["cluster"]["standbys"] = 0
		if err := h.Configure(mode, s); err != nil {
			return err
		}
		_, err := h.Shell(f.t.Context(), "systemctl enable quorumd && systemctl restart quorumd")
		return err
	}))
}

// checkView checks that a host's agent shows the actual state of the cluster.
func (f *fleet) checkView(h *lab.Host) {
	f.t.Helper()
	f.eventually(h.Name+" reports all other hosts", func() bool {
		s, ok := f.status(h)
		return ok && len(s.Hosts) == len(f.Hosts)
	})
	s, _ := f.status(h)
	leads := 0
	for _, m := range s.Cluster.Members {
		if m.Role != policy.RoleVoter || !m.Live || m.Version == "" {
			f.t.Errorf("%s shows %+v, which is a live voter", h.Name, m)
		}
		if m.Leader {
			leads++
		}
	}
	if s.Cluster.Voters != 3 || s.Cluster.FaultTolerance != 1 || !s.Cluster.Reachable || leads != 1 ||
		s.Unit.State != "active" {
		f.t.Errorf("%s shows %d leaders, the unit %s, and %+v", h.Name, leads, s.Unit.State, s.Cluster)
	}
}
