// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/quorumd/quorumd/cmd/quorumd/daemon"
)

func TestMain(m *testing.M) {
	if os.Getenv("QUORUMD_TEST_MAIN") != "" { // act as quorumd itself
		main()
	}
	os.Exit(m.Run())
}

func TestVersionIsAFlag(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "--version")
	cmd.Env = []string{"QUORUMD_TEST_MAIN=1"}
	out, err := cmd.CombinedOutput()
	if want := "quorumd version " + daemon.Version() + "\n"; err != nil || string(out) != want {
		t.Errorf("%v: %q, want %q", err, out, want)
	}
}
