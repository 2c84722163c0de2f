// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// becomeSystemd turns this process into a "systemd --user": it enters the control groups in args and execs. If it has
// its own mount namespace, because this machine does not run systemd, it also creates the directory by which the
// instance detects systemd.
func becomeSystemd(args []string) int {
	for _, group := range args {
		pid := []byte(strconv.Itoa(os.Getpid()))
		if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), pid, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "cannot enter the control group:", err)
			return 1
		}
	}
	if os.Getenv("QUORUMD_TEST_OWN_RUN") != "" {
		err := unix.Mount("tmpfs", "/run", "tmpfs", 0, "mode=0755")
		if err == nil {
			err = os.MkdirAll("/run/systemd/system", 0o755)
		}
		if err == nil {
			err = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "cannot make /run/systemd/system:", err)
			return 1
		}
	}
	os.Unsetenv("QUORUMD_TEST_OWN_RUN")
	os.Unsetenv(roleVariable)
	program := "/usr/lib/systemd/systemd"
	if _, err := os.Stat(program); err != nil {
		program = "/lib/systemd/systemd"
	}
	err := syscall.Exec(program, []string{program, "--user", "--unit=basic.target"}, os.Environ())
	fmt.Fprintln(os.Stderr, "cannot become systemd:", err)
	return 1
}

// becomeLogind turns this process into a systemd-logind. In its own mount namespace it has a separate /run, so it does
// not disturb the machine. The directory mounted there outlives the process, so that logind can be restarted.
func becomeLogind() int {
	run := os.Getenv("QUORUMD_TEST_RUN")
	err := os.MkdirAll(filepath.Join(run, "systemd", "system"), 0o755)
	if err == nil {
		err = unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	}
	if err == nil {
		err = unix.Mount(run, "/run", "", unix.MS_BIND, "")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot make /run:", err)
		return 1
	}
	os.Unsetenv(roleVariable)
	for _, program := range []string{"/usr/lib/systemd/systemd-logind", "/lib/systemd/systemd-logind"} {
		err = syscall.Exec(program, []string{program}, os.Environ())
	}
	fmt.Fprintln(os.Stderr, "cannot become logind:", err)
	return 1
}
