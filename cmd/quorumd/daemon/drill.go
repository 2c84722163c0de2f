// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/quorumd/quorumd/agent/backup"
	"github.com/quorumd/quorumd/agent/backup/drill"
	"github.com/quorumd/quorumd/agent/config"
)

// spoolOf is where snapshots lie on this host while something is done with them.
func spoolOf(conf config.Config) string { return filepath.Join(conf.Paths.State, "snapshots") }

// drill proves the snapshot of that name, or the newest, and notes it in the store.
func (j job) drill(ctx context.Context, name string) (backup.Outcome, error) {
	m, err := j.manifest(ctx, name)
	if err != nil {
		return backup.Outcome{}, err
	}
	served, err := drill.Run(ctx, j.store, m, j.conf.Etcd.Binary, j.options)
	if err != nil {
		return unproven(err)
	}
	if err := backup.MarkProven(ctx, j.store, m); err != nil {
		return backup.Outcome{}, err
	}
	now := &j.options.Now
	proven := j.evidence.Seen(backup.Snapshot{Manifest: m, VerifiedAt: now, ProvenAt: now})
	return backup.Outcome{Snapshots: []backup.Snapshot{proven}, Served: served}, nil
}

// unproven tells what keeps this host from proving anything from what speaks against a snapshot.
func unproven(err error) (backup.Outcome, error) {
	if errors.Is(err, backup.ErrNoIdentity) || errors.Is(err, drill.ErrKilled) || errors.Is(err, drill.ErrNoMemory) {
		return backup.Outcome{Unprovable: err.Error()}, nil
	}
	return backup.Outcome{}, err
}

// sweepDrill takes away what a drill has left that was killed with this host's agent.
func sweepDrill(conf config.Config, log *slog.Logger) {
	if err := drill.Sweep(spoolOf(conf)); err != nil {
		log.Warn(err.Error(), "remedy", "rm -r "+filepath.Join(spoolOf(conf), "drill"))
	}
}

const (
	tidyEvery = 100 * time.Millisecond
	// tidyFor is how long the etcd of a drill may take to end that was killed.
	tidyFor = 10 * time.Second
)

// tidyDrill takes away what a drill has left that has just ended. Its etcd may take a moment longer than its child.
func tidyDrill(conf config.Config, log *slog.Logger) {
	limit := time.NewTimer(tidyFor)
	defer limit.Stop()
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for {
		sweepDrill(conf, log)
		if _, err := os.Lstat(filepath.Join(spoolOf(conf), "drill")); err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-limit.C:
			return // the next drill takes it away
		}
	}
}
