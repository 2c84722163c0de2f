// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package execshim

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain also acts as the child that executes a program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Command {
		if err := Main(os.Args[2:]); err != nil {
			os.Stderr.WriteString(err.Error())
		}
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

func child(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, Command}
}

func TestProgramRunsWithItsArgumentsAndExitCode(t *testing.T) {
	t.Parallel()
	var output bytes.Buffer
	p := New(t.Context(), child(t), "/bin/sh", "-c", `echo "$0 $1 $$"; exit 7`, "a", "b c")
	p.Stdout = &output
	err := p.Start()
	if err != nil {
		t.Fatal(err)
	}
	number := p.Process.Pid
	ended, is := errors.AsType[*exec.ExitError](p.Wait())
	if !is || ended.ExitCode() != 7 {
		t.Errorf("the program ended with %v", ended)
	}
	var inside int
	if text, found := strings.CutPrefix(output.String(), "a b c "); found {
		inside = atoi(text)
	}
	if inside != number {
		t.Errorf("process %d output %q", number, &output)
	}
	if err := New(t.Context(), child(t), "/bin/true").Run(); err != nil {
		t.Error(err)
	}
}

func atoi(text string) (n int) {
	for _, digit := range strings.TrimSpace(text) {
		n = 10*n + int(digit-'0')
	}
	return n
}

func TestProgramThatNeverRanIsDistinguishedFromAFailedOne(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	for want, p := range map[string]*Program{
		"no such file or directory": New(t.Context(), child(t), missing),
		"permission denied":         New(t.Context(), child(t), t.TempDir()),
		"the child process exited before it executed the program: exit status 2": New(t.Context(),
			[]string{"/bin/sh", "-c", "exit 2"}),
		"the child process exited before it executed the program: exit status 0": New(t.Context(),
			[]string{"/bin/true"}),
		"the child process exited before it executed the program: signal: killed": New(t.Context(),
			[]string{"/bin/sh", "-c", "kill -9 $$"}),
		"the child process exited before it executed the program: signal: aborted": New(t.Context(),
			[]string{"/bin/sh", "-c", "kill -6 $$"}),
	} {
		refused, is := errors.AsType[RefusedError](p.Run())
		if !is || refused.Error() != want {
			t.Errorf("got %q, want %q", refused, want)
		}
	}
	if err := New(t.Context(), []string{missing}).Run(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("with a missing child: %v", err)
	}
}

func TestProgramIsKilledWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := New(ctx, child(t), "/bin/sleep", "300").Run(); err == nil || time.Since(began) > time.Minute {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
}

func TestChildRefusesToBeStartedByHand(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(child(t)[0], Command, "/bin/true").CombinedOutput()
	if err == nil || string(out) != "internal command: quorumd runs it itself" {
		t.Errorf("%s, %v", out, err)
	}
}
