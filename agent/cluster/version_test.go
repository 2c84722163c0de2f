// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/execshim"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// program returns the path of the test binary under another name; see TestMain.
func program(t *testing.T, as string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), as)
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// shim returns the command line of the test binary as the child that executes a program; see TestMain.
func shim(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, execshim.Command}
}

func TestAnEtcdBinaryReportsItsVersion(t *testing.T) {
	t.Parallel()
	got, err := cluster.BinaryVersion(within(t), shim(t), testbed.Etcd(t, "v3.6"))
	if err != nil || !strings.HasPrefix(got, "3.6.") {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestABinaryRunsWithoutOurEnvironment(t *testing.T) {
	t.Parallel()
	if got, err := cluster.BinaryVersion(within(t), shim(t), program(t, asPrinter)); err != nil || got != "3.6.0" {
		t.Errorf("got %s, %v; the last number counts the variables", got, err)
	}
}

func TestAnotherProgramHasNoVersion(t *testing.T) {
	t.Parallel()
	notExecutable := filepath.Join(t.TempDir(), "etcd")
	if err := os.WriteFile(notExecutable, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/bin/true":                            "its output is not etcd's; check etcd.binary",
		"/bin/false":                           "exited with status 1; check etcd.binary",
		filepath.Join(t.TempDir(), "not-here"): "no such file or directory",
		notExecutable:                          "permission denied",
	} {
		got, err := cluster.BinaryVersion(within(t), shim(t), path)
		if !contains(err, want) || !contains(err, "cannot get the version of "+path+": ") {
			t.Errorf("%s: got %q, %v; want %q", path, got, err, want)
		}
	}
}

func TestAHangingBinaryIsGivenUpOnWithTheContext(t *testing.T) {
	t.Parallel()
	hanging := program(t, asHanging)
	began := time.Now() // taken before the timeout of the context starts
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	got, err := cluster.BinaryVersion(ctx, shim(t), hanging)
	if took := time.Since(began); err == nil || took < 200*time.Millisecond || took > 5*time.Second {
		t.Errorf("got %q, %v after %v", got, err, took)
	}
}

func TestAHangingBinaryIsGivenUpOnAfterAFewSecondsWithoutADeadline(t *testing.T) {
	t.Parallel()
	began := time.Now()
	got, err := cluster.BinaryVersion(within(t), shim(t), program(t, asHanging))
	if took := time.Since(began); err == nil || took > 10*time.Second {
		t.Errorf("got %q, %v after %v", got, err, took)
	}
}

func TestABinaryThatNeverStopsPrintingIsCutOff(t *testing.T) {
	t.Parallel()
	began := time.Now()
	got, err := cluster.BinaryVersion(within(t), shim(t), program(t, asBabbling))
	if took := time.Since(began); err == nil || took > 4*time.Second {
		t.Errorf("got %q, %v after %v; the timeout of a binary that hangs is 5s", got, err, took)
	}
}
