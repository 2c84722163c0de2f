// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestACommandRunsWhileEtcdIsDownAndTheHostComesBackEvenIfItFails(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	n1, dir := w.hosts[0], t.TempDir()
	began, goes := filepath.Join(dir, "began"), filepath.Join(dir, "goes")
	exists := func(path string) bool { _, err := os.Stat(path); return err == nil }
	output := make(chan commandResult, 1)
	go func() {
		output <- me().ctl(n1, "cycle", "--reason", "a test", "--", "sh", "-c",
			"touch "+began+"; until test -e "+goes+"; do sleep 0.1; done; exit 3")
	}()
	w.eventually("the command runs", func() bool { return exists(began) })
	if pid := n1.etcdPID(); pid != 0 {
		t.Errorf("the command runs while etcd runs as process %d", pid)
	}
	me().ctl(n1, "cycle", "--", "true").check(t, "another command", exitConflict,
		"maintenance of this host was already requested", "a test")
	me().ctl(n1, "cycle").check(t, "other work", exitConflict, "already has a different request (maintenance)")
	n1.stop() // as an upgrade of quorumd does
	w.start(n1)
	w.never(2*time.Second, "etcd was started under the command", func() bool { return n1.etcdPID() != 0 })
	if err := os.WriteFile(goes, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	(<-output).check(t, "the command", 3, "CYCLED, the host is back",
		"the command failed: sh exited with status 3; this host is back")
	if n1.etcdPID() == 0 {
		t.Error("etcd was not started again")
	}
	me().ctl(n1, "maintenance", "off").check(t, "nothing to end", 0, "n1 is not in maintenance")
	w.waitRolesAgree()
	w.verify(3, 0)
}
