// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"syscall"
	"testing"

	"github.com/prometheus/procfs"
)

// killChildren kills a process after its children.
func killChildren(t *testing.T, pid int) {
	t.Helper()
	all, err := procfs.AllProcs()
	if err != nil {
		t.Error(err)
	}
	for _, p := range all {
		if stat, err := p.Stat(); err == nil && stat.PPID == pid {
			_ = syscall.Kill(p.PID, syscall.SIGKILL) // it may have ended
		}
	}
	_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
}
