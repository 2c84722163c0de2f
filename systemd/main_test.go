// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"flag"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// roleVariable makes the test binary, run again as a child, play a role instead of running tests.
const roleVariable = "QUORUMD_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(playRole(role, os.Args[1:]))
	}
	update := flag.Bool("update", false, "rewrite the golden files")
	flag.Parse()
	if *update {
		os.Setenv(updateVariable, "yes")
	}
	goleak.VerifyTestMain(m)
}

const updateVariable = "QUORUMD_TEST_UPDATE"

// golden compares got with testdata/name. With -update, it writes got there first.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv(updateVariable) != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); if that is right, run the test with -update:\n%s", path, diff)
	}
}

// send signals one process, and refuses a PID that addresses several.
func send(t *testing.T, pid int, signal syscall.Signal) {
	t.Helper()
	if pid <= 1 {
		t.Fatalf("there is no process to signal: PID %d", pid)
	}
	if err := syscall.Kill(pid, signal); err != nil {
		t.Fatal(err)
	}
}

// slack is how much longer than its bound a call may take on a machine busy with other tests.
const slack = 5 * time.Second

// eventually waits until the condition holds, checking every 5 ms, and fails the test after 15 s.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(15 * time.Second)
	defer limit.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("after 15 s still waiting until %s", what)
		}
	}
}
