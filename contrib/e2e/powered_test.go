// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// trackUnsynced puts the disks of a host on file systems that track unsynced writes: those of etcd's data, of its log
// if that is separate, and of the agent's own files. They are separate, as in production: a sync on one makes nothing
// durable on another.
func (h *host) trackUnsynced() {
	h.w.t.Helper()
	for _, name := range []string{"disk", "wal", "state"} {
		dir := filepath.Join(h.Options.Dir, name)
		back := filepath.Join(h.w.dir, h.Options.Name+"-"+name)
		must(h.w.t, errors.Join(os.MkdirAll(dir, 0o755), os.MkdirAll(back, 0o755)))
		h.disks = append(h.disks, testbed.MountPowered(h.w.t, back, dir))
	}
}

// logApart puts the WAL of a host's etcd on a separate disk.
func logApart(o *testbed.HostOptions) { o.Set["etcd.walDir"] = filepath.Join(o.Dir, "wal", "etcd") }

// syncDisks makes the file names at the top of a host's disks durable.
func (h *host) syncDisks() {
	h.w.t.Helper()
	for _, m := range h.disks {
		dir, err := os.Open(m.Dir)
		must(h.w.t, err)
		must(h.w.t, errors.Join(dir.Sync(), dir.Close()))
	}
}

// cutPower discards all unsynced writes of a host on which no process runs, and the files that do not survive a boot.
// It does nothing unless the world is powered.
func (h *host) cutPower() {
	h.w.t.Helper()
	for _, m := range h.disks {
		lost, err := m.CutPower()
		must(h.w.t, err)
		h.w.t.Logf("%s of %s: %s", filepath.Base(m.Dir), h.Options.Name, lost)
	}
	if len(h.disks) > 0 {
		must(h.w.t, os.RemoveAll(filepath.Join(h.Options.Dir, "run")))
	}
}
