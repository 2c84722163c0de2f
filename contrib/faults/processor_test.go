// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs && long

package faults

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestHostFaultsAreFoundInTime has one after the other, and nothing beside them.
//
//nolint:paralleltest // one of them takes a processor away
func TestHostFaultsAreFoundInTime(t *testing.T) {
	made := tableOf(t, "host")
	t.Run("the processor is taken away", func(t *testing.T) { processorTaken(t, made) })
	t.Run("a certificate is about to expire", func(t *testing.T) { certificateEnds(t, made) })
}

// processorTaken has a program of the highest priority keep the only processor that the agent and its probe may use.
// The kernel leaves the others a twentieth of it.
func processorTaken(t *testing.T, made *table) {
	t.Helper()
	h := start(t, testbed.MountFaultfs(t, memory(t)).Dir, map[string]string{"disk.starved": "20"})
	until(t, h, readyBound, "OK", "")
	rests(t, h)
	for _, pid := range append(children(t, h.AgentPID()), h.AgentPID()) {
		if out, err := exec.Command("taskset", "-acp", "1", strconv.Itoa(pid)).CombinedOutput(); err != nil {
			t.Fatalf("cannot bind the agent to a processor: %v: %s", err, out)
		}
	}
	greedy := exec.Command("taskset", "-c", "1", "chrt", "-f", "1", "sh", "-c", "while :; do :; done")
	greedy.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	began := time.Now()
	if err := greedy.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = greedy.Process.Kill(); _ = greedy.Wait() }()
	until(t, h, 3*time.Minute, "WARM", "CPU_STARVED")
	took, now := time.Since(began), shown(t, h)
	made.note(t, 0, Row{
		Fault: "the processor is taken away", How: "a busy loop at real-time priority on the agent's only processor",
	}, took, now, "CPU_STARVED")
	for _, found := range now.Findings {
		if found.Component == "disk" {
			t.Errorf("the disk is blamed: %+v", found)
		}
	}
}

// children gives the processes that a process has started.
func children(t *testing.T, pid int) (all []int) {
	t.Helper()
	out, err := exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output()
	if err != nil {
		t.Fatalf("cannot find the probe: %v", err)
	}
	for word := range strings.FieldsSeq(string(out)) {
		child, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, child)
	}
	return all
}

func certificateEnds(t *testing.T, made *table) {
	t.Helper()
	dir, err := os.MkdirTemp("", "q")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	ca, err := testbed.NewCA(dir)
	if err != nil {
		t.Fatal(err)
	}
	files, err := ca.Issue("client", testbed.CertOptions{NotAfter: time.Now().Add(5 * time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	const nobody = "https://127.0.0.1:1" // listens there
	began := time.Now()
	h := start(t, testbed.MountFaultfs(t, memory(t)).Dir, map[string]string{
		"cluster.endpoints": "[" + nobody + "]", "etcd.clientURL": nobody,
		"cluster.tls": fmt.Sprintf("{ca: %s, cert: %s, key: %s}", files.CA, files.Cert, files.Key),
	})
	until(t, h, time.Minute, "OK", "ETCD_CERTIFICATE_ENDS_SOON")
	made.add(t, 1, Row{
		Fault: "a certificate is about to expire",
		How:   "`cluster.tls.cert` of 65 minutes with 5 left, there when quorumd is started",
	}, time.Since(began), h, "ETCD_CERTIFICATE_ENDS_SOON")
}
