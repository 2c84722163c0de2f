// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package scratchetcd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// started runs a script in place of etcd. The packages that use this package test it with a real etcd.
func started(t *testing.T, script string) *Etcd {
	t.Helper()
	dir := t.TempDir()
	lockFile, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lockFile.Close() })
	e, err := Start("/bin/sh", dir, []string{"-c", script}, lockFile, "ADDED=yes")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// waitForOutput waits until the program has written the text.
func waitForOutput(t *testing.T, e *Etcd, text string) {
	t.Helper()
	for range 200 {
		if strings.Contains(e.LogTail(), text) {
			return
		}
		<-time.After(50 * time.Millisecond)
	}
	t.Fatalf("its output is %q, want %q", e.LogTail(), text)
}

func TestOnlyTheSentSignalIsACleanStop(t *testing.T) {
	t.Parallel()
	e := started(t, "echo up $ADDED; exec sleep 100")
	waitForOutput(t, e, "up yes")
	if err := e.Stop(time.Minute); err != nil {
		t.Errorf("stopped: %v", err)
	}
	e = started(t, "trap 'exit 3' TERM; echo up; while :; do sleep 0.1; done")
	waitForOutput(t, e, "up")
	if err := e.Stop(time.Minute); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("exited with status 3: %v", err)
	}
	e = started(t, "trap '' TERM; echo up; while :; do sleep 0.1; done")
	waitForOutput(t, e, "up")
	if err := e.Stop(50 * time.Millisecond); err == nil || !strings.Contains(err.Error(), "did not stop within 50ms") {
		t.Errorf("killed: %v", err)
	}
	e = started(t, "kill -KILL $$")
	if err := <-e.Ended(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("killed by itself: %v", err)
	}
}

func TestMissingProgramIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := Start("/nowhere/etcd", t.TempDir(), nil, os.Stdin); err == nil ||
		!strings.Contains(err.Error(), "cannot start /nowhere/etcd") {
		t.Errorf("got %v", err)
	}
}
