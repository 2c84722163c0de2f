// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/datadir"
	"github.com/quorumd/quorumd/agent/execshim"
	"github.com/quorumd/quorumd/agent/fileaccess"
	"github.com/quorumd/quorumd/agent/nextetcd"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health/etcdflags"
	"github.com/quorumd/quorumd/systemd"
)

// nextEtcd returns a function that checks whether etcd.nextBinary accepts the settings of the running etcd, and can
// read its write-ahead log; nil if none is configured. While the binary, the etcd process and its settings are the
// same, the function returns its previous result for up to nextEvery. It must not be called concurrently.
func nextEtcd(e config.Etcd, data datadir.Dir) func(context.Context, int) (policy.NextEtcd, error) {
	if e.NextBinary == "" {
		return nil
	}
	var last checkedNext
	return func(ctx context.Context, pid int) (policy.NextEtcd, error) {
		foreign, err := fileaccess.ProgramWriters(e.NextBinary, os.Geteuid())
		switch {
		case err != nil:
			return policy.NextEtcd{}, fmt.Errorf("cannot check who can write etcd.nextBinary: %w", err)
		case foreign != nil:
			return policy.NextEtcd{Problem: fmt.Sprintf("is not run, because %s can write %s → %s", foreign.Who,
				foreign.Path, foreign.Remedy)}, nil
		}
		settings := etcdSettings(e)
		if e.Runner == config.RunnerSystemd {
			if settings.Unit, err = (systemd.Units{Dial: systemd.SystemBus}).Environment(ctx, e.Unit); err != nil {
				return policy.NextEtcd{}, err
			}
		}
		now := checkedNext{
			pid: pid, binary: versionOfFile(e.NextBinary), file: versionOfFile(e.EnvironmentFile),
			unit: strings.Join(settings.Unit, "\n"), at: time.Now(),
		}
		return last.refresh(now, func(known logState) (policy.NextEtcd, logState, error) {
			return checkNext(ctx, e, data, settings, pid, known)
		})
	}
}

// nextEvery is the time after which etcd.nextBinary is checked again although nothing seems to have changed, and
// nextRetry the time after an error, or while etcd has yet to save a snapshot.
const (
	nextEvery = 5 * time.Minute
	nextRetry = time.Minute
)

// checkedNext is the result of a check of etcd.nextBinary, with what it depends on, except etcd's configuration file: a
// change there counts after nextEvery at the latest.
type checkedNext struct {
	pid          int
	binary, file string // see versionOfFile
	unit         string
	at           time.Time
	result       policy.NextEtcd
	err          error

	log logState
}

// refresh returns the result, after a new check if the last one no longer counts.
func (c *checkedNext) refresh(now checkedNext, check func(known logState) (policy.NextEtcd, logState, error),
) (policy.NextEtcd, error) {
	if !c.same(now) {
		known := logUnknown
		if c.pid == now.pid {
			known = c.log
		}
		now.result, now.log, now.err = check(known)
		*c = now
	}
	return c.result, c.err
}

// same reports whether the result still counts.
func (c checkedNext) same(now checkedNext) bool {
	every := nextEvery
	if c.err != nil || c.log == logOld {
		every = nextRetry
	}
	return c.pid == now.pid && c.binary == now.binary && c.file == now.file && c.unit == now.unit &&
		now.at.Sub(c.at) < every
}

// versionOfFile returns a text that changes when a file is replaced or written.
func versionOfFile(path string) string {
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		return err.Error()
	}
	return fmt.Sprint(s.Dev, s.Ino, s.Size, s.Mode, s.Ctim.Nano())
}

// logState is whether the log of etcd contains entries that etcd 3.7 cannot read.
type logState int

const (
	logUnknown logState = iota
	logOld              // it does, until etcd has saved a snapshot
	logNew              // it does not, and etcd 3.6 writes none; see [policy.NeedsNewLog]
)

// checkNext checks etcd.nextBinary. known is the state of the log according to the last check of the same process.
func checkNext(ctx context.Context, e config.Etcd, data datadir.Dir, settings etcdflags.Reader, pid int, known logState,
) (next policy.NextEtcd, log logState, err error) {
	names, err := settings.Names(pid)
	if err != nil {
		return policy.NextEtcd{}, known, err
	}
	found, err := nextetcd.Check(ctx, []string{self, execshim.Command}, e.NextBinary, names)
	next = policy.NextEtcd{Version: found.Version, Problem: strings.Join(found.Problems, "; ")}
	if err != nil || next.Problem != "" || !policy.NeedsNewLog(next.Version) || known == logNew {
		return next, known, err
	}
	read, err := data.Log(ctx)
	if err != nil {
		return next, logUnknown, err
	}
	if next.Problem = policy.AgainstLog(read.Snapshot, read.Old); next.Problem != "" {
		return next, logOld, nil
	}
	return next, logNew, nil
}
