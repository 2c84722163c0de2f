// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"testing"
	"time"
)

func TestAHostCommitsToOneBootstrapAttempt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func() *State {
		t.Helper()
		f, err := Open(HostFiles{}, dir, t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if err := open().CommitToAttempt("L", "1"); err != nil {
		t.Fatal(err)
	}
	f := open()
	if f.BootstrapAttempt() != (BootstrapAttempt{List: "L", Attempt: "1"}) || f.CommitToAttempt("L", "1") != nil {
		t.Errorf("after a restart it is committed to %+v", f.BootstrapAttempt())
	}
	if f.CommitToAttempt("L", "2") == nil || f.CommitToAttempt("M", "1") == nil || f.BeginBootstrapAttempt("L") == nil {
		t.Error("it commits to another attempt as well")
	}
	if f.RequestBootstrap("root", time.Now()) == nil || f.Bootstrap() != nil {
		t.Error("it bootstraps a cluster of its own")
	}
}

func TestTheFirstHostBootstrapsTheClusterOfItsAttempt(t *testing.T) {
	t.Parallel()
	f, err := Open(HostFiles{}, t.TempDir(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.BeginBootstrapAttempt("L"); err != nil || f.BootstrapAttempt().Attempt == "" {
		t.Fatalf("BeginBootstrapAttempt recorded %+v: %v", f.BootstrapAttempt(), err)
	}
	if err := f.RequestBootstrap("root", time.Now()); err != nil {
		t.Error(err)
	}
	other, err := Open(HostFiles{}, t.TempDir(), t.TempDir(), nil)
	if err != nil || other.RequestBootstrap("root", time.Now()) != nil || other.CommitToAttempt("L", "1") == nil {
		t.Error("a host that bootstraps a cluster commits to another's attempt")
	}
}
