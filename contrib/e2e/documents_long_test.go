// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/quorumd/quorumd/contrib/docs"
	"github.com/quorumd/quorumd/contrib/testbed"
)

func TestDocumentedCommandsWork(t *testing.T) {
	t.Parallel()
	_, set := withStore(t, "{count: 7}")
	w := newWorld(t, worldOptions{hosts: 3, voters: 3, set: set, each: func(_ int, o *testbed.HostOptions) {
		o.Set = maps.Clone(o.Set)
		o.Set["maintenance.hooks"] = filepath.Join(o.Dir, "hooks")
	}})
	for _, h := range w.hosts {
		commands := filepath.Join(h.Options.Dir, "hooks", "commands.d")
		must(t, os.MkdirAll(commands, 0o755))
		must(t, os.WriteFile(filepath.Join(commands, "upgrade-etcd"), []byte("#!/bin/sh\nexit 0\n"), 0o755))
	}
	w.start(w.hosts...)
	w.bootstrap()
	w.within(2*formation, "there are 3 voters", func() bool { return w.has(3, 0) && w.absent(w.keys().Op()) })
	for _, c := range documentedLines() {
		h := w.hosts[c.host]
		args := docs.Words(c.line)
		if args[0] == "rollout" && args[1] == "start" && !slices.Contains(args, "--dry-run") {
			args = append(args, "--yes") // there is no terminal
		}
		if done := me().ctl(h, args...); done.code != c.exit {
			t.Fatalf("%s# quorumctl %s: exit %d, want %d:\n%s", h.Options.Name, c.line, done.code, c.exit, done.output)
		}
	}
	w.verify(3, 0)
}
