// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/backup"
)

// TestEveryThreadOfASnapshotJobHasIdlePriority inspects a job while it waits for a store that does not answer. It does
// not run with the race detector, which needs more memory than a job may use.
func TestEveryThreadOfASnapshotJobHasIdlePriority(t *testing.T) {
	t.Parallel()
	asked, done := make(chan struct{}, 100), make(chan struct{})
	store := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-done
	}))
	defer store.Close()
	defer close(done)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"keys": "aws_access_key_id = KEY\naws_secret_access_key = SECRET\n",
		"quorumd.yaml": fmt.Sprintf("cluster: {name: prod, endpoints: [http://127.0.0.1:1]}\n"+
			"etcd: {clientURL: \"http://127.0.0.1:1\", peerURL: \"http://127.0.0.1:2\"}\npaths: {state: %s}\n"+
			"backup: {store: {s3: {endpoint: %q, bucket: snapshots, region: here, credentialsFile: %s/keys}}}\n",
			dir, store.URL, dir),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	job := exec.CommandContext(t.Context(), os.Args[0], backup.Command, filepath.Join(dir, "quorumd.yaml"), "list")
	job.Env = []string{"QUORUMD_TEST_MAIN=1"}
	var said strings.Builder
	job.Stdout, job.Stderr = &said, &said
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- job.Wait() }()
	select {
	case <-asked:
	case err := <-ended:
		t.Fatalf("the job has ended: %v: %s", err, said.String())
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", job.Process.Pid))
	if err != nil || len(threads) < 2 {
		t.Fatalf("the threads of the job: %v: %v", threads, err)
	}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has just ended
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])) // from the third field on
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			t.Fatal(err)
		}
		disk, _, failed := unix.Syscall(unix.SYS_IOPRIO_GET, 1, uintptr(id), 0)
		if nice, policy := fields[19-3], fields[41-3]; nice != "19" || policy != "5" || failed != 0 || disk>>13 != 3 {
			t.Errorf("thread %d has nice %s, policy %s and disk class %d (%v)", id, nice, policy, disk>>13, failed)
		}
	}
	if err := job.Process.Kill(); err != nil {
		t.Error(err)
	}
	<-ended
}
