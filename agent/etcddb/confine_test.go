// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package etcddb

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// childEnv is the variable that makes this program a child that exceeds its limits, or prints them.
const childEnv = "QUORUMD_TEST_CONFINED"

func TestMain(m *testing.M) {
	limits := Limits{Memory: 200 << 20, CPU: time.Second}
	var err error
	switch os.Getenv(childEnv) {
	case "":
		os.Exit(m.Run())
	case "memory":
		if err = limits.Confine(); err == nil {
			os.Exit(takeGigabyte())
		}
	case "time":
		if err = limits.Confine(); err == nil {
			for n := 0; ; n++ { // uses CPU time until the limit, like an endless walk
				runtime.KeepAlive(n)
			}
		}
	case "child":
		if err = limits.ConfineSelf(); err == nil {
			os.Exit(startUnconfined())
		}
	case "limits":
		err = printLimits()
	}
	if err != nil {
		os.Exit(3)
	}
	os.Exit(0)
}

func takeGigabyte() int {
	all := make([][]byte, 0, 64)
	for range 64 {
		part := make([]byte, 16<<20)
		for i := 0; i < len(part); i += 4096 {
			part[i] = 1
		}
		all = append(all, part)
	}
	return len(all)
}

// startUnconfined starts a child and lifts the child's limits. First the child prints whether it has the limits, then
// this process does.
func startUnconfined() int {
	child := exec.Command(os.Args[0]) //nolint:noctx // the child exits when this process ends
	child.Env, child.Stdout = append(os.Environ(), childEnv+"=limits"), os.Stdout
	in, err := child.StdinPipe()
	if err == nil {
		err = child.Start()
	}
	if err == nil {
		err = errors.Join(Unconfine(child.Process.Pid), in.Close(), child.Wait(), printLimits())
	}
	if err != nil {
		fmt.Println(err)
		return 3
	}
	return 0
}

// printLimits waits for the end of its input, then prints whether this process has the limits.
func printLimits() error {
	var memory, cpu unix.Rlimit
	_, err := io.Copy(io.Discard, os.Stdin)
	err = errors.Join(err, unix.Getrlimit(unix.RLIMIT_DATA, &memory), unix.Getrlimit(unix.RLIMIT_CPU, &cpu))
	fmt.Println(memory.Cur == 200<<20, cpu.Cur == 1)
	return err
}

func confinedChild(t *testing.T, kind string) (*exec.Cmd, string, error) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), program)
	child.Env = append(os.Environ(), childEnv+"="+kind)
	out, err := child.CombinedOutput()
	return child, string(out), err
}

func TestConfinedChildEndsAloneIfItAllocatesTooMuch(t *testing.T) {
	t.Parallel()
	child, out, err := confinedChild(t, "memory")
	// Go's runtime may find no memory for its report, and crash instead.
	refused := strings.Contains(out, "out of memory") || strings.Contains(out, "cannot allocate memory") ||
		strings.Contains(out, "SIGSEGV")
	if err == nil || child.ProcessState.ExitCode() != 2 || !refused {
		t.Errorf("it ended with %v: %.200s", err, out)
	}
}

func TestConfinedChildEndsIfItUsesTooMuchCPUTime(t *testing.T) {
	t.Parallel()
	child, out, err := confinedChild(t, "time")
	if used := child.ProcessState.UserTime() + child.ProcessState.SystemTime(); err == nil || used > 10*time.Second {
		t.Errorf("it ended with %v after %s: %.200s", err, used, out)
	}
}
