// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// authenticate enables authentication, and returns a client of the user root. It creates a role for quorumd's prefix,
// but does not grant it to quorumd's user.
func (w *world) authenticate() *clientv3.Client {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	etcd, url := w.hosts[0].etcd, w.hosts[0].Options.ClientURL
	prefix := strings.TrimSuffix(w.keys().Hosts(), "hosts/")
	for _, do := range []func() error{
		func() error { _, err := etcd.RoleAdd(ctx, "root"); return err },
		func() error { _, err := etcd.UserAdd(ctx, "root", "root"); return err },
		func() error { _, err := etcd.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := etcd.RoleAdd(ctx, "quorumd"); return err },
		func() error {
			_, err := etcd.RoleGrantPermission(ctx, "quorumd", prefix, clientv3.GetPrefixRangeEnd(prefix),
				clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := etcd.UserAdd(ctx, "quorumd", "secret"); return err },
		func() error { _, err := etcd.AuthEnable(ctx); return err },
	} {
		if err := do(); err != nil {
			w.t.Fatal(err)
		}
	}
	root, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, Username: "root", Password: "root"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = root.Close() }) // the test has ended, so an error does not matter
	return root
}

// grant grants quorumd's user a role.
func (w *world) grant(root *clientv3.Client, role string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	if _, err := root.UserGrantRole(ctx, "quorumd", role); err != nil {
		w.t.Fatal(err)
	}
}

func TestWithAuthenticationQuorumdReportsTheRoleItNeedsAndWorksWithIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{hosts: 3, voters: 3, each: func(_ int, o *testbed.HostOptions) {
		file := filepath.Join(filepath.Dir(o.Dir), o.Name+"-password")
		if err := os.WriteFile(file, []byte("secret\n"), 0o400); err != nil {
			t.Fatal(err)
		}
		o.Set["etcd.user"], o.Set["etcd.passwordFile"] = "quorumd", file
	}})
	n1, n2 := w.hosts[0], w.hosts[1]
	w.start(n1)
	w.bootstrap()
	root := w.authenticate()
	denied := func(h *host, role string) bool {
		s, ok := h.status()
		return ok && len(s.Reasons) > 0 && s.Reasons[0].Code == string(policy.PermissionDenied) &&
			strings.Contains(s.Reasons[0].Text, role)
	}
	w.start(w.hosts[1:]...)
	w.eventually("n2 reports that it needs access to its prefix", func() bool {
		return denied(n2, "etcdctl role grant-permission quorumd readwrite --prefix=true /quorumd/demo/")
	})
	w.grant(root, "quorumd")
	w.eventually("a host reports that it needs root to join", func() bool {
		return denied(n2, "etcdctl user grant-role quorumd root") ||
			denied(w.hosts[2], "etcdctl user grant-role quorumd root")
	})
	w.grant(root, "root")
	w.within(2*formation, "all hosts vote", func() bool {
		for _, h := range w.hosts {
			if h.role() != policy.RoleVoter {
				return false
			}
		}
		return true
	})
	n2.requestWork(policy.WorkRestart)
	w.eventually("n2's operation has ended", func() bool { return n2.endedWith(policy.Cycled) })
}
