// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// Instead of running the tests, the test binary can be the real child, in several environments, or the parent of a
// probe.
const (
	asChild             = "probe-disk"
	asSmallChild        = "probe-disk-with-a-file-size-limit"
	asUnprivilegedChild = "probe-disk-unprivileged"
	asParent            = "parent-of-a-probe"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case asSmallChild:
			limit := unix.Rlimit{Cur: 64 << 10, Max: 64 << 10}
			must(unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
			os.Exit(ChildMain(os.Args[2:], os.Stdin, os.Stderr))
		case asUnprivilegedChild:
			if os.Geteuid() == 0 {
				must(syscall.Setgroups(nil))
				must(syscall.Setgid(65534))
				must(syscall.Setuid(65534))
			}
			os.Exit(ChildMain(os.Args[2:], os.Stdin, os.Stderr))
		case asChild:
			os.Exit(ChildMain(os.Args[2:], os.Stdin, os.Stderr))
		case asParent:
			parent(os.Args[2])
			os.Exit(0)
		}
	}
	goleak.VerifyTestMain(m)
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// parent starts a probe, prints the child's process ID, and stays until its stdin ends.
func parent(dir string) {
	probe, err := StartProbe(Options{Command: command(asChild), Dir: dir, Target: dir})
	must(err)
	fmt.Println(probe.Read().PID)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func command(as string) []string { return []string{"/proc/self/exe", as} }

// options returns probe options for a temporary directory, at the highest rate.
func options(t *testing.T) Options {
	t.Helper()
	dir := t.TempDir()
	return Options{
		Command: command(asChild), Dir: dir + "/probe", Target: dir + "/etcd/member/wal",
		DirectInterval: MinInterval, WALInterval: MinInterval, VerifyInterval: MinInterval, UsageInterval: MinInterval,
	}
}

// follower collects the readings of a probe.
type follower struct {
	*Probe
	t       *testing.T
	samples []Sample
	last    Reading
}

func follow(t *testing.T, o Options) *follower {
	t.Helper()
	probe, err := StartProbe(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(probe.Close)
	return &follower{Probe: probe, t: t}
}

// until reads until the condition holds.
func (f *follower) until(what string, holds func() bool) {
	f.t.Helper()
	eventually(f.t, what, func() bool {
		f.last = f.Read()
		f.samples = append(f.samples, f.last.Samples...)
		return holds()
	}, func() string {
		return fmt.Sprintf("%d samples, last reading %+v, failure %v", len(f.samples), f.last, f.last.Failure)
	})
}

// good returns the lane's samples without an error.
func (f *follower) good(lane Lane) (good []Sample) {
	for _, s := range f.samples {
		if s.Lane == lane && s.Errno == 0 {
			good = append(good, s)
		}
	}
	return good
}

func (f *follower) failedWith(op string, errno syscall.Errno) bool {
	return f.last.Failure != nil && f.last.Failure.Op == op && f.last.Failure.Errno == errno
}

func eventually(t *testing.T, what string, holds func() bool, state func() string) {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not within a minute: %s (%s)", what, strings.TrimSpace(state()))
		}
	}
}
