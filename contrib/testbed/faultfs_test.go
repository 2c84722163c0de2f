// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs

package testbed_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestADiskIsSlowOnRequestOrTheMachineReportsWhyNot accepts either outcome: FUSE is not available everywhere.
func TestADiskIsSlowOnRequestOrTheMachineReportsWhyNot(t *testing.T) {
	t.Parallel()
	binary, err := testbed.FaultfsBinary()
	if err != nil {
		t.Fatal(err)
	}
	back := t.TempDir()
	if reason := testbed.FaultfsUsable(); reason != nil {
		if _, err := testbed.StartFaultfs(binary, back, t.TempDir()); err == nil || err.Error() != reason.Error() {
			t.Errorf("got %v, want %v", err, reason)
		}
		return
	}
	m := testbed.MountFaultfs(t, back)
	f, err := os.Create(filepath.Join(m.Dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := m.Rule("fsync * delay=60ms"); err != nil {
		t.Fatal(err)
	}
	if took := timeOf(t, f.Sync); took < 60*time.Millisecond {
		t.Errorf("fsync took %v", took)
	}
	if stats, err := m.Stats(); err != nil || stats != "hits=1 waiting=0 rule fsync * delay=60ms\n" {
		t.Errorf("stats: %q, %v", stats, err)
	}
	expectSlowEtcd(t, m)
	if err := m.Clear(); err != nil {
		t.Fatal(err)
	}
	if stats, err := m.Stats(); err != nil || stats != "" {
		t.Errorf("stats after clear: %q, %v", stats, err)
	}
	if err := m.Rule("fsync * slowly"); err == nil || !strings.Contains(err.Error(), `unknown action "slowly"`) {
		t.Errorf("an invalid rule: %v", err)
	}
	if err := m.Unmount(); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(m.Dir); err != nil || len(entries) > 0 {
		t.Errorf("after Unmount: %v, %v", entries, err)
	}
	if _, err := os.Stat(filepath.Join(back, "f")); err != nil {
		t.Errorf("the backing directory: %v", err)
	}
}

// expectSlowEtcd runs an etcd on the mount, on which every fsync takes 60 ms longer. No write may be acknowledged
// sooner than that.
func expectSlowEtcd(t *testing.T, m *testbed.Mount) {
	t.Helper()
	etcd := startAlone(t, t.Context(), t.TempDir(), "--data-dir="+filepath.Join(m.Dir, "data"))
	etcd.StopAfter(t)
	if err := etcd.WaitReady(within(t)); err != nil {
		t.Fatal(err)
	}
	client, err := etcd.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if took := timeOf(t, func() error {
		_, err := client.Put(within(t), "key", "slow")
		return err
	}); took < 60*time.Millisecond {
		t.Errorf("a write took %v", took)
	}
	if err := etcd.Kill9(); err != nil {
		t.Fatal(err)
	}
	expectSignal(t, etcd, syscall.SIGKILL)
}

func TestAFaultfsThatCannotMountReportsWhy(t *testing.T) {
	t.Parallel()
	binary, err := testbed.FaultfsBinary()
	if err != nil {
		t.Fatal(err)
	}
	m, err := testbed.StartFaultfs(binary, filepath.Join(t.TempDir(), "missing"), t.TempDir())
	if err == nil {
		t.Fatal(m.Unmount(), "it mounted a directory that does not exist")
	}
	if want := "cannot use the directory"; testbed.FaultfsUsable() == nil && !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func timeOf(t *testing.T, do func() error) time.Duration {
	t.Helper()
	began := time.Now()
	if err := do(); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}
