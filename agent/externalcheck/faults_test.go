// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs

package externalcheck

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
	"github.com/quorumd/quorumd/health"
)

// TestExternalCheckOnAHungDiskDoesNotBlockTheAgent checks that garbage collection and the start of other processes do
// not wait for the child that accesses the disk. The disk recovers after a minute, so that a failing test ends.
func TestExternalCheckOnAHungDiskDoesNotBlockTheAgent(t *testing.T) {
	t.Parallel()
	const hang, limit = time.Minute, 20 * time.Second
	m := testbed.MountFaultfs(t, scripts(t, map[string]string{"sick": "echo OK", "sick-too": "echo OK"}))
	must(t, m.Rule("open sick* delay="+hang.String()))
	dir := scripts(t, map[string]string{"well": "echo OK"})
	for _, name := range []string{"sick", "sick-too"} {
		must(t, os.Symlink(filepath.Join(m.Dir, name), filepath.Join(dir, name)))
	}
	b := open(t, dir, 50*time.Millisecond)
	b.from = b.from.Add(-time.Minute)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	began := time.Now()
	testbed.Eventually(t, limit, "both programs wait for the disk", func() bool {
		b.Read(ctx) // on a busy machine, a program may reach its time limit before it accesses the disk
		stats, err := m.Stats()
		must(t, err)
		return strings.Contains(stats, "waiting=2 ")
	})
	runtime.GC()
	must(t, exec.Command("/bin/true").Run())
	for _, name := range []string{"sick", "sick-too"} {
		b.until(ctx, name, func(r health.ExternalCheckReading) bool { return r.Hung })
	}
	if took := time.Since(began); took > limit {
		t.Errorf("the agent was blocked for up to %s", took)
	}
	if stats, err := m.Stats(); err != nil || !strings.Contains(stats, "hits=2 waiting=2 ") {
		t.Errorf("the disk has recovered, or was accessed again: %s, %v", stats, err)
	}
	must(t, m.Clear())
	b.settle(end)
}
