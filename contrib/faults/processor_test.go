// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs && long

package faults

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestProcessorFaultsAreFoundInTime starves an agent and its probe of CPU time. The disk is healthy, and quorumd must
// not blame it.
func TestProcessorFaultsAreFoundInTime(t *testing.T) {
	t.Parallel()
	made := tableOf(t, "processor")
	h := start(t, testbed.MountFaultfs(t, memory(t)).Dir, map[string]string{"disk.starved": "20"})
	until(t, h, readyBound, "OK", "")
	waitProbeIdle(t, h)
	began := time.Now()
	ration(t, h.AgentPID())
	until(t, h, 5*time.Minute, "WARM", "CPU_STARVED")
	took, now := time.Since(began), showHealth(t, h)
	made.addShown(t, 0, Row{
		Fault: "the agent is short of CPU time", How: "a cgroup that limits the agent and its probe to 1 % of a CPU",
	}, took, now, "CPU_STARVED")
	for _, found := range now.Findings {
		if found.Component == "disk" {
			t.Errorf("the disk is blamed: %+v", found)
		}
	}
}

// ration puts a process and its children into a cgroup with 1 % of a CPU: 1 ms in 100.
func ration(t *testing.T, pid int) {
	t.Helper()
	group, file, quota := "/sys/fs/cgroup", "cpu.max", "1000 100000"
	if _, err := os.Stat(filepath.Join(group, "cgroup.controllers")); err != nil { // cgroup v1
		group, file, quota = "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "1000"
	} else if err := os.WriteFile(filepath.Join(group, "cgroup.subtree_control"), []byte("+cpu"), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(group, fmt.Sprintf("quorumd-faults-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	procs := "cgroup.procs"
	all := children(t, pid)
	t.Cleanup(func() {
		for _, p := range append(all, pid) { // ignore processes that have ended
			_ = os.WriteFile(filepath.Join(group, procs), []byte(strconv.Itoa(p)), 0o644)
		}
		testbed.Eventually(t, time.Minute, "the cgroup is empty", func() bool { return syscall.Rmdir(dir) == nil })
	})
	err := os.WriteFile(filepath.Join(dir, file), []byte(quota), 0o644)
	for _, p := range append(all, pid) {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, procs), []byte(strconv.Itoa(p)), 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// children returns the child processes of a process.
func children(t *testing.T, pid int) (all []int) {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		text, _ := os.ReadFile(list) // a thread may have ended
		for word := range strings.FieldsSeq(string(text)) {
			child, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, child)
		}
	}
	if len(all) == 0 {
		t.Fatal("the agent has no probe")
	}
	return all
}
