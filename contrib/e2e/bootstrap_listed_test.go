// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// listAllHosts configures all hosts to bootstrap automatically.
func (w *world) listAllHosts() {
	w.t.Helper()
	var list []string
	for _, h := range w.hosts {
		list = append(list, h.Options.Name+"=http://127.0.0.1:"+freePort(w.t))
	}
	for _, h := range w.hosts {
		h.set("bootstrap.expect", fmt.Sprint(len(list)))
		h.set("bootstrap.hosts", "["+strings.Join(list, ", ")+"]")
	}
}

func TestListedHostsBootstrapOnceTheLastOfThemAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{hosts: 3, voters: 3})
	w.listAllHosts()
	n1, n2, n3 := w.hosts[0], w.hosts[1], w.hosts[2]
	w.start(n1, n2)
	w.eventually("n1 waits for n3", func() bool { return n1.reasonIs(policy.BootstrapWaiting, "n3 does not answer") })
	w.eventually("n2 is committed to n1's attempt", func() bool {
		return n2.reasonIs(policy.BootstrapWaiting, "this host is committed to it")
	})
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	_, err := n2.Client.Bootstrap(ctx, clusterName)
	if e, is := errors.AsType[*control.Error](err); !is ||
		!strings.Contains(e.Message, "is committed to the attempt of ") {
		t.Fatalf("n2 was asked to bootstrap a separate cluster, and answers %v", err)
	}
	w.never(3*time.Second, "n1 bootstraps without n3", func() bool { return n1.role() == policy.RoleVoter })
	w.start(n3)
	w.eventually("three voters", func() bool { return w.has(3, 0) })
	w.verify(3, 0)
}

func TestAFirstHostThatLostItsDiskBootstrapsNoSecondCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{hosts: 3, voters: 1})
	w.listAllHosts()
	n1, n2, n3 := w.hosts[0], w.hosts[1], w.hosts[2]
	w.start(n1, n2)
	w.eventually("n2 is committed to n1's attempt", func() bool {
		return n2.reasonIs(policy.BootstrapWaiting, "this host is committed to it")
	})
	must(t, n1.end())
	n1.running = false
	must(t, os.RemoveAll(filepath.Join(n1.Options.Dir, "state")))
	w.start(n1, n3)
	w.eventually("n1 waits for an operator", func() bool {
		return n1.reasonIs(policy.BootstrapWaiting, "n2 is committed to an earlier attempt")
	})
	w.never(3*time.Second, "a cluster is bootstrapped", func() bool {
		return n1.role() == policy.RoleVoter || n2.role() == policy.RoleVoter || n3.role() == policy.RoleVoter
	})
}

// A listed host returns with the data of some cluster. The others cannot determine whether that cluster still exists,
// so they bootstrap no cluster until an operator has decided.
func TestAListedHostWithDataKeepsTheOthersFromBootstrapping(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{hosts: 3, voters: 3})
	w.listAllHosts()
	n1, n2, n3 := w.hosts[0], w.hosts[1], w.hosts[2]
	ports := testbed.FreePorts(t, 2)
	before, err := testbed.StartMember(t.Context(), testbed.MemberOptions{
		Binary: testbed.Etcd(t, testbed.Small), Name: "n3", Dir: t.TempDir(), DataDir: n3.DataDir(),
		ClientURL: fmt.Sprintf("http://127.0.0.1:%d", ports[0]), PeerURL: fmt.Sprintf("http://127.0.0.1:%d", ports[1]),
	})
	must(t, err)
	before.StopAfter(t)
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	must(t, before.WaitReady(ctx))
	must(t, before.Terminate())
	_ = before.Wait(ctx) // the error reports the signal that ended it

	w.start()
	w.eventually("n1 reports which host has data", func() bool {
		return n1.reasonIs(policy.BootstrapWaiting, "n3 is not new: there is data in its data directory")
	})
	w.eventually("n2 is committed to n1's attempt", func() bool {
		return n2.reasonIs(policy.BootstrapWaiting, "this host is committed to it")
	})
	w.never(3*time.Second, "a cluster is bootstrapped", func() bool {
		return n1.role() == policy.RoleVoter || n2.role() == policy.RoleVoter || n3.etcdPID() != 0
	})
	data := filepath.Join(n3.DataDir(), "member")
	must(t, os.Rename(data, data+".quorumd-kept")) // the operator knows that its cluster no longer exists
	w.eventually("three voters", func() bool { return w.has(3, 0) })
	w.verify(3, 0)
}
