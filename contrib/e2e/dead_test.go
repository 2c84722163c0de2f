// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// threeVoters makes a world of three voters that are not replaced automatically.
func threeVoters(t *testing.T, proxied bool) *world {
	t.Helper()
	w := newWorld(t, worldOptions{hosts: 3, voters: 3, proxied: proxied, set: map[string]string{
		"timing.hostRecordTTL": "4s",
	}})
	w.start()
	w.bootstrap()
	w.eventually("there are three voters", func() bool { return w.has(3, 0) })
	w.waitRolesAgree() // wait until the last join has ended: for a long time, only the joining host's agent may end it
	return w
}

// powerOff kills everything on a host, as a power loss does. The host stays down until it is started again.
func (h *host) powerOff() {
	h.w.t.Helper()
	h.kill()
	if !h.killEtcdIfRunning() {
		h.w.t.Fatalf("no etcd ran on %s", h.Options.Name)
	}
	h.off = true
	h.setReachable(false)
}

// killEtcdIfRunning kills etcd on a host whose agent was killed, and reports whether etcd was running.
func (h *host) killEtcdIfRunning() bool {
	h.w.t.Helper()
	was, err := h.KillEtcd(h.w.t.Context())
	must(h.w.t, err)
	h.w.eventually("nothing runs on "+h.Options.Name, func() bool {
		pid, err := h.EtcdPID(h.w.t.Context())
		return err == nil && pid == 0
	})
	return was
}

func TestAVoterOnADeadMachineIsReportedDeadUntilItsAgentIsBack(t *testing.T) {
	t.Parallel()
	w := threeVoters(t, false)
	n1, n2, n3 := w.hosts[0], w.hosts[1], w.hosts[2]
	died := time.Now()
	n3.powerOff()
	for _, h := range []*host{n1, n2} {
		name := h.Options.Name
		w.eventually(name+" reports n3 as dead", func() bool {
			return h.reasonIs(policy.VoterDead, ", reported by n1, n2; no host replaces it, because repair.dead is off")
		})
		t.Logf("%s reports it after %s", name, time.Since(died).Round(100*time.Millisecond))
		me().ctl(h, "explain").check(t, "explain", 0, "quorumctl member remove n3 --reason '<why>'")
	}
	w.start(n3)
	w.eventually("n3 is no longer dead: quorumd has started its etcd", func() bool {
		return n1.waitsFor(policy.Idle) && n2.waitsFor(policy.Idle)
	})
}

func TestACutOffVoterThatServesIsNeverReportedDead(t *testing.T) {
	t.Parallel()
	w := threeVoters(t, true)
	n1, n2, n3 := w.hosts[0], w.hosts[1], w.hosts[2]
	dead := func() bool { return n1.hasReason(policy.VoterDead) || n2.hasReason(policy.VoterDead) }
	refuse := func(peer, client bool) {
		n3.peerProxy.Set(testbed.Faults{Refuse: peer})
		n3.clientProxy.Set(testbed.Faults{Refuse: client})
		n3.peerProxy.Reset()
		n3.clientProxy.Reset()
	}
	n3.kill() // its etcd keeps running
	for _, c := range []struct {
		what         string
		peer, client bool
		span         time.Duration
	}{
		{"only its agent is down", false, false, 8 * time.Second},
		{"its client port is closed", false, true, 12 * time.Second},
		{"its peer port is closed", true, false, 12 * time.Second},
		{"no host can connect to it, but it can connect to the others", true, true, 25 * time.Second},
	} {
		refuse(c.peer, c.client)
		w.never(c.span, "n3 is reported dead although "+c.what, dead)
		w.eventually("n3 serves although "+c.what, n3.writes)
	}
	n3.killEtcd()
	w.eventually("n3 is reported dead when it is", dead)
}
