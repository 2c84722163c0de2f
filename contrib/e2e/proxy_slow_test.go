// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/proxy"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestClientsLeaveAVoterWithASlowDiskAndReturnWhenItRecovers changes only the disk of a follower: its etcd keeps
// running, voting and answering. The probe of its agent finds that the disk is slow. The agent of another host then
// updates the list for the proxy of that host, which is a separate process.
func TestClientsLeaveAVoterWithASlowDiskAndReturnWhenItRecovers(t *testing.T) {
	t.Parallel()
	var disk *testbed.Mount
	listen := fmt.Sprintf("127.0.0.1:%d", testbed.FreePorts(t, 1)[0])
	set := map[string]string{
		"timing.callTimeout": "2500ms", "timing.lockTTL": "15s", "disk.directInterval": "1s", "disk.walInterval": "1s",
	}
	w := newWorld(t, worldOptions{hosts: 3, voters: 3, set: set, each: func(i int, o *testbed.HostOptions) {
		switch i {
		case 1:
			o.Set["proxy.listen"] = listen
		case 3:
			disk = faulty(t, o, map[string]string{
				"disk.fsyncClear": "200ms", "disk.fsyncWarm": "250ms", "disk.fsyncSlow": "400ms", "disk.stall": "10s",
			})
		}
	}})
	t.Cleanup(func() { clearRules(t, disk) })
	n1, n3 := w.hosts[0], w.hosts[2]
	w.start()
	w.bootstrap()
	w.within(2*formation, "there are 3 voters", func() bool { return w.has(3, 0) })
	w.waitRolesAgree()
	w.lead(n1)
	w.eventually("n3 is healthy", func() bool { s, ok := n3.status(); return ok && s.Health.State == "OK" })
	w.eventually("n1 lists three voters", func() bool { return w.listsVoters(n1, 3) })
	output := proxyProcess(t, n1.ConfigPath(), listen)

	id, pid := memberID(t, address(n3.Options.ClientURL)), n3.etcdPID()
	mine, others := w.connectTo(listen, id, 3)
	rule(t, disk, "fsync * delay="+slowFsync.String())
	began := time.Now()
	w.eventually("the probe finds n3's disk slow", func() bool { return n3.hasFinding("SLOW", "DISK_FSYNC_SLOW") })
	w.eventually("n1 lists it as SLOW, and the others alone to use", func() bool {
		voters := n1.listedVoters()
		return len(voters) == 3 && !slices.ContainsFunc(voters, func(v proxy.Voter) bool {
			return v.Use == (v.Name == "n3") || v.Name == "n3" && v.Why != "is SLOW"
		})
	})
	listed := time.Since(began)
	w.eventually("the proxy reports it", func() bool {
		return strings.Contains(output.String(), "n3 is not used: it is SLOW")
	})
	for range 9 { // by connection count alone, the proxy would send them there
		if got := w.newProxyClient(listen); got.member == id {
			t.Error("a new client goes to the voter that is SLOW")
		}
	}
	for i, p := range mine {
		w.eventually("the connections to n3 end", p.isBroken)
		if mine[i] = w.newProxyClient(listen); mine[i].member == id {
			t.Error("a client that has left returns there")
		}
	}
	t.Logf("%.1f s after each write to n3's disk took %v longer, n3 was listed as SLOW; after %.1f s it had none",
		listed.Seconds(), slowFsync, time.Since(began).Seconds())
	for _, p := range slices.Concat(mine, others) {
		if p.isBroken() || !p.exchange() {
			t.Errorf("a connection to another voter has broken: %v", p.err())
		}
	}
	if !w.isVoter(n3) || n3.etcdPID() != pid || memberID(t, address(n3.Options.ClientURL)) != id || !n3.writes() {
		t.Error("n3's etcd did not stay as it was: this proves something else")
	}

	clearRules(t, disk)
	began = time.Now()
	w.eventually("n1 lists n3 to use again", func() bool { return w.listsVoters(n1, 3) })
	w.eventually("new clients go to n3 again", func() bool { return w.newProxyClient(listen).member == id })
	t.Logf("%.1f s after n3's disk had recovered, new clients went there", time.Since(began).Seconds())
	if s, ok := n3.status(); !ok || s.Health.State == "SLOW" || s.Health.State == "UNKNOWN" {
		t.Errorf("n3 is %s meanwhile", s.Health.State)
	}
	for _, p := range slices.Concat(mine, others) {
		if p.isBroken() || !p.exchange() {
			t.Errorf("a connection has broken because a voter came back: %v", p.err())
		}
	}
}

// newProxyClient returns a new client, whose connection stays open until it breaks or the test ends.
func (w *world) newProxyClient(listen string) *proxyClient {
	w.t.Helper()
	p, err := connectThrough(listen, false)
	must(w.t, err)
	w.t.Cleanup(p.close)
	return p
}

// connectTo connects clients until the given number is connected to this member. It returns those clients and the
// others.
func (w *world) connectTo(listen, member string, n int) (mine, others []*proxyClient) {
	w.t.Helper()
	w.eventually("enough clients are connected to that voter", func() bool {
		if p := w.newProxyClient(listen); p.member == member {
			mine = append(mine, p)
		} else {
			others = append(others, p)
		}
		return len(mine) == n
	})
	return mine, others
}

// listedVoters returns the voters that the host's agent lists for its proxy.
func (h *host) listedVoters() []proxy.Voter {
	h.w.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.Options.Dir, "run", proxy.FileName))
	must(h.w.t, err)
	list, err := proxy.Parse(text)
	must(h.w.t, err)
	return list.Voters
}
