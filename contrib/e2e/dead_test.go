// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// threeVoters makes a world of three voters that replace nobody by themselves.
func threeVoters(t *testing.T, proxied bool) *world {
	t.Helper()
	w := newWorld(t, worldOptions{hosts: 3, voters: 3, proxied: proxied, set: map[string]string{
		"timing.presenceTTL": "4s",
	}})
	w.start()
	w.bootstrap()
	w.eventually("three voters stand", func() bool { return w.has(3, 0) })
	w.rolesAgree() // the join of the last is over: nobody else ends it before its agent has been gone for long
	return w
}

// die kills all that runs on a host, as the loss of its power does, until it is started again. Its etcd was not stopped
// in order.
func (h *host) die() {
	h.w.t.Helper()
	h.kill()
	if !h.etcdDies() {
		h.w.t.Fatalf("no etcd ran on %s", h.Options.Name)
	}
	h.off = true
	h.answers(false)
}

// etcdDies kills etcd on a host whose agent was killed, and tells whether there was one.
func (h *host) etcdDies() bool {
	h.w.t.Helper()
	was, err := h.KillEtcd(h.w.t.Context())
	must(h.w.t, err)
	h.w.eventually("nothing runs on "+h.Options.Name, func() bool {
		pid, err := h.EtcdPID(h.w.t.Context())
		return err == nil && pid == 0
	})
	return was
}

func TestAVoterWhoseMachineDiesIsCalledDeadByTheOthersUntilItsAgentIsBack(t *testing.T) {
	t.Parallel()
	w := threeVoters(t, false)
	n1, n2, n3 := w.hosts[0], w.hosts[1], w.hosts[2]
	died := time.Now()
	n3.die()
	for _, h := range []*host{n1, n2} {
		name := h.Options.Name
		w.eventually(name+" calls n3 dead", func() bool {
			return h.says(policy.VoterDead, ", reported by n1, n2; no host replaces it, because repair.dead is off")
		})
		t.Logf("%s says so after %s", name, time.Since(died).Round(100*time.Millisecond))
		me().ctl(h, "explain").is(t, "explain", 0, "quorumctl member remove n3 --reason '<why>'")
	}
	w.start(n3)
	w.eventually("n3 is dead no more: quorumd has started its etcd", func() bool {
		return n1.waitsFor(policy.AtRest) && n2.waitsFor(policy.AtRest)
	})
}

func TestAVoterThatIsCutOffAndServesIsNeverCalledDead(t *testing.T) {
	t.Parallel()
	w := threeVoters(t, true)
	n1, n2, n3 := w.hosts[0], w.hosts[1], w.hosts[2]
	dead := func() bool { return n1.names(policy.VoterDead) || n2.names(policy.VoterDead) }
	refuse := func(peer, client bool) {
		n3.peerProxy.Set(testbed.Faults{Refuse: peer})
		n3.clientProxy.Set(testbed.Faults{Refuse: client})
		n3.peerProxy.Reset()
		n3.clientProxy.Reset()
	}
	n3.kill() // its etcd goes on
	for _, c := range []struct {
		what         string
		peer, client bool
		span         time.Duration
	}{
		{"only its agent is gone", false, false, 8 * time.Second},
		{"its client port is closed", false, true, 12 * time.Second},
		{"its peer port is closed", true, false, 12 * time.Second},
		{"nobody can connect to it, and it can connect to the others", true, true, 25 * time.Second},
	} {
		refuse(c.peer, c.client)
		w.never(c.span, "n3 is called dead where "+c.what, dead)
		w.eventually("n3 serves where "+c.what, n3.writes)
	}
	n3.killEtcd()
	w.eventually("n3 is called dead when it is", dead)
}
