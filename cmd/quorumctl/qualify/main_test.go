// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package qualify

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/disk"
)

// If the first argument is one of these, the test binary runs as that child instead of running the tests.
const (
	asChild             = "probe-disk"
	asSmallChild        = "probe-disk-with-a-file-size-limit"
	asUnprivilegedChild = "probe-disk-unprivileged"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case asSmallChild:
			limit := unix.Rlimit{Cur: 64 << 10, Max: 64 << 10}
			must(unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
		case asUnprivilegedChild:
			if os.Geteuid() == 0 {
				must(syscall.Setgroups(nil))
				must(syscall.Setgid(65534))
				must(syscall.Setuid(65534))
			}
		}
		switch os.Args[1] {
		case asChild, asSmallChild, asUnprivilegedChild:
			os.Exit(disk.ChildMain(os.Args[2:], os.Stdin, os.Stderr))
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

func command(as string) []string { return []string{"/proc/self/exe", as} }
