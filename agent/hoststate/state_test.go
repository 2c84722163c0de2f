// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestStateSurvivesARestartAndReportsDamagedFiles(t *testing.T) {
	t.Parallel()
	state, runtime := filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "run")
	open := func() *State {
		t.Helper()
		f, err := Open(HostFiles{}, state, runtime, nil)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := open()
	if f.Bootstrap() != nil || clusterOf(f) != 0 || f.Backoff("boot", 0, time.Minute) != 0 {
		t.Fatal("new files are not empty")
	}
	must(t, f.RequestBootstrap("root", time.Now()))
	must(t, f.SetMembership(0xfedcba9876543210, 7))
	must(t, f.SetLastCluster(0xfedcba9876543211, time.Now()))
	must(t, f.NoteJoin(true, "boot", time.Minute))
	must(t, f.NoteJoin(true, "boot", time.Minute))
	token := f.Bootstrap().Token
	f = open()
	if b := f.Bootstrap(); b == nil || b.Token != token || b.By != "root" {
		t.Fatalf("the request is %+v", b)
	}
	if clusterOf(f) != 0xfedcba9876543210 {
		t.Fatalf("the cluster is %x", clusterOf(f))
	}
	if f.LastCluster() != 0xfedcba9876543211 {
		t.Fatalf("the last cluster is %x", f.LastCluster())
	}
	if got := f.Backoff("boot", 90*time.Second, time.Minute); got != 90*time.Second {
		t.Fatalf("after two failures the next attempt is in %s, want 1m30s", got)
	}
	if got := f.Backoff("another boot", 0, time.Minute); got != 0 {
		t.Fatalf("after a reboot the next attempt is in %s", got)
	}
	must(t, f.NoteJoin(false, "boot", 2*time.Minute))
	must(t, f.EndBootstrap())
	f = open()
	if f.Bootstrap() != nil || f.Backoff("boot", 0, time.Minute) != 0 {
		t.Fatal("the ended request is still pending")
	}
	must(t, os.WriteFile(filepath.Join(state, clusterName), []byte(`{"id":`), 0o644))
	if _, err := Open(HostFiles{}, state, runtime, nil); err == nil {
		t.Fatal("a damaged file counts as missing: the host would forget its cluster")
	}
}

func clusterOf(f *State) uint64 { id, _ := f.Membership(); return id }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
