// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build root

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// unprivileged returns a user who may read only what every user may read, and may change nothing. The test must run as
// root.
func unprivileged(t *testing.T) person {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("cannot run programs as another user: run the test as root")
	}
	return person{&syscall.Credential{Uid: 65534, Gid: 65534}}
}

func TestFilesClosedToTheAgentAreNamedAndEtcdIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := oneVoter(t, 1, nil)
	h := w.hosts[0]
	untouched := h.expectSameProcess()
	ca, err := testbed.NewCA(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	files, err := ca.Issue("n1", testbed.CertOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// All users can read every file except the key, and except the configuration until open is called.
	for path, mode := range map[string]os.FileMode{
		w.dir: 0o755, h.Options.Dir: 0o755, h.ConfigPath(): 0o600,
		ca.File: 0o644, files.Cert: 0o644, files.Key: 0o600,
	} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	stranger := unprivileged(t)
	stranger.runAgent(h).check(t, "a closed configuration", exitNoPerm, "cannot read the configuration",
		"permission denied")
	stranger.runCtl(t, "config", "check", h.ConfigPath()).check(t, "a closed configuration", exitNoPerm,
		"permission denied")

	stranger.ctl(h, "status").check(t, "a stranger may read", 0)
	for _, change := range []string{
		"pause --reason x", "resume", "bootstrap --yes", "operation release --force --reason x",
	} {
		stranger.ctl(h, strings.Fields(change)...).check(t, change, exitNoPerm, "not permitted", "run it as root")
	}
	if !w.absent(w.keys().Pause()) {
		t.Error("a stranger has paused the cluster")
	}
	h.stop()

	good := h.Options.Set
	h.configure(tlsSet(files.CA, files.Cert, files.Key))
	h.configure(h.httpsSet())
	open := func() {
		t.Helper()
		if err := os.Chmod(h.ConfigPath(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	open()
	stranger.runAgent(h).check(t, "a closed key", exitConfig,
		"cluster.tls.key: "+files.Key+" cannot be read: permission denied")

	h.Options.Set = good
	h.configure(nil)
	open()
	stranger.runAgent(h).check(t, "a closed state directory", exitNoPerm, "permission denied")
	untouched("all of it")
}

// strangers checks that unprivileged users cannot change anything, neither through an open socket nor through a closed
// one.
func strangers(t *testing.T, h *host) {
	t.Helper()
	changes := []string{
		"maintenance on --reason x --no-wait", "maintenance off", "cycle --no-wait", "cycle -- true",
		"rollout start restart --yes --reason x", "rollout pause", "rollout resume", "rollout abort",
	}
	h.open(t, 0o755)
	for _, line := range changes {
		unprivileged(t).ctl(h, strings.Fields(line)...).check(t, line+" as a stranger", exitNoPerm, "not permitted",
			"→ run it as root")
	}
	h.open(t, 0o700)
	for _, line := range append(changes, "maintenance status") {
		unprivileged(t).ctl(h, strings.Fields(line)...).check(t, line+" at a closed socket", exitNoPerm,
			"permission denied", "→ ")
	}
}

// open sets the mode of the directories above the host's socket. With 0755 the socket is open to all users, as in
// /run/quorumd.
func (h *host) open(t *testing.T, mode os.FileMode) {
	t.Helper()
	for _, dir := range []string{h.w.dir, h.Options.Dir} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAStrangerCannotChangeAHost(t *testing.T) {
	t.Parallel()
	w := oneVoter(t, 1, nil)
	h := w.hosts[0]
	w.eventually("the host is idle", func() bool { return h.waitsFor(policy.Idle) })
	strangers(t, h)
	w.eventually("nothing is requested, and nothing was done", func() bool {
		return h.waitsFor(policy.Idle) && h.maintenance() == "" && w.absent(w.keys().Op()) &&
			w.absent(w.keys().Rollout())
	})
}

func TestAStrangerMaySeeACommandButNotEndIt(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	n1, dir := w.hosts[0], t.TempDir()
	began, goes := filepath.Join(dir, "began"), filepath.Join(dir, "goes")
	output := make(chan commandResult, 1)
	go func() {
		output <- me().ctl(n1, "cycle", "--reason", "a test", "--", "sh", "-c",
			"touch "+began+"; until test -e "+goes+"; do sleep 0.1; done")
	}()
	w.eventually("the command runs", func() bool { _, err := os.Stat(began); return err == nil })
	n1.open(t, 0o755)
	unprivileged(t).ctl(n1, "maintenance", "status").check(t, "to look", 0, "n1: safe to touch", "a test")
	unprivileged(t).ctl(n1, "maintenance", "off").check(t, "to end it as a stranger", exitNoPerm, "not permitted")
	if err := os.WriteFile(goes, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	(<-output).check(t, "the command", 0, "CYCLED, the host is back")
}
