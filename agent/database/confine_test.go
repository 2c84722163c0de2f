// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package database

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// confined makes this program a child that allocates more than it may.
const confined = "QUORUMD_TEST_CONFINED"

func TestMain(m *testing.M) {
	if os.Getenv(confined) == "" {
		os.Exit(m.Run())
	}
	if err := Confine(200 << 20); err != nil {
		os.Exit(3)
	}
	all := make([][]byte, 0, 64)
	for range 64 {
		part := make([]byte, 16<<20)
		for i := 0; i < len(part); i += 4096 {
			part[i] = 1
		}
		all = append(all, part)
	}
	os.Exit(len(all)) // a gigabyte
}

func TestAConfinedChildEndsAloneWhenItAllocatesTooMuch(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), program)
	child.Env = append(os.Environ(), confined+"=1")
	out, err := child.CombinedOutput()
	if err == nil || child.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "out of memory") &&
		!strings.Contains(string(out), "cannot allocate memory") {
		t.Errorf("it ended with %v: %.200s", err, out)
	}
}
