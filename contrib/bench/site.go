// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// endBound is how long all processes of a side may take to end.
const endBound = time.Minute

// bench is one run of the command.
type bench struct {
	options
	out  io.Writer
	lock *os.File // locked while this run uses the directory
}

func newBench(o options, out io.Writer) (*bench, error) {
	if o.dir == "" {
		return nil, errors.New("cannot start without -dir: name a directory that only the bench uses")
	}
	for _, path := range []*string{&o.quorumd, &o.etcd, &o.dir} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return nil, err
		}
		*path = absolute
	}
	for _, path := range []string{o.quorumd, o.etcd} {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("cannot start: %w; run make bench, which builds it", err)
		}
	}
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(o.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start: another bench runs in %s; wait until it has ended", o.dir),
			lock.Close())
	}
	b := &bench{options: o, out: out, lock: lock}
	if err := b.sweep(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot remove leftovers of an earlier run in %s: %w", b.sides(), err),
			lock.Close())
	}
	return b, nil
}

// sides returns the parent of the sides' directories.
func (b *bench) sides() string { return filepath.Join(b.dir, "run") }

// sweep ends the etcds that the agents of an earlier run have left running, and removes that run's files.
func (b *bench) sweep() error {
	configs, err := filepath.Glob(filepath.Join(b.sides(), "*", "*", "quorumd.yaml"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), endBound)
	defer cancel()
	for _, config := range configs {
		h := &testbed.Host{Options: testbed.HostOptions{Dir: filepath.Dir(config), Etcd: b.etcd}}
		if err := stop(ctx, h); err != nil {
			return err
		}
	}
	return os.RemoveAll(b.sides())
}

// checkSpace returns the time limit of the run. It fails if there is less free space than the largest row needs.
func (b *bench) checkSpace(chosen []row) (limit time.Duration, err error) {
	var need uint64
	for _, r := range chosen {
		need, limit = max(need, r.need), limit+r.bound*time.Duration(b.rounds)
	}
	if b.limit > 0 {
		limit = min(limit, b.limit)
	}
	free, err := freeBytes(b.dir)
	if err != nil {
		return 0, err
	}
	b.progress("%d rows, each %d times: up to %s below %s, and up to %v", len(chosen), b.rounds, gib(need), b.dir,
		limit)
	if free < need {
		return 0, fmt.Errorf("cannot start: %s are free in %s, and %s are needed; choose smaller rows with ROWS and "+
			"SIZES", gib(free), b.dir, gib(need))
	}
	return limit, nil
}

func freeBytes(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("cannot read the free space of %s: %w", dir, err)
	}
	return s.Bavail * uint64(s.Bsize), nil
}

func gib(bytes uint64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/gibibyte) }

// version returns the version of the etcd server.
func (b *bench) version(ctx context.Context) (string, error) {
	answer, err := exec.CommandContext(ctx, b.etcd, "--version").Output()
	first, _, _ := strings.Cut(string(answer), "\n")
	_, version, found := strings.Cut(first, "etcd Version: ")
	if err == nil && !found {
		err = fmt.Errorf("%q is not the version output of etcd", first)
	}
	if err != nil {
		return "", fmt.Errorf("cannot start: %s --version: %w", b.etcd, err)
	}
	return version, nil
}

// progress prints a line with the time of day.
func (b *bench) progress(format string, args ...any) {
	fmt.Fprintf(b.out, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// site runs one side of a row. At the end of the side, it ends everything that it has started.
type site struct {
	*bench
	ctx  context.Context // context of the row
	row  string
	dir  string
	need uint64 // free space that the row needs, in bytes
	ends []func(ctx context.Context) error
}

// side runs one side of a row.
func (b *bench) side(ctx context.Context, r row, name string, do func(s *site) error) error {
	dir := filepath.Join(b.sides(), name)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	s := &site{bench: b, ctx: ctx, row: r.name, dir: dir, need: r.need}
	b.progress("%s, %s", r.name, name)
	began := time.Now()
	err := do(s)
	if ctx.Err() != nil {
		err = errors.Join(err, context.Cause(ctx))
	}
	failed := err
	err = errors.Join(err, s.end())
	var missing *unavailable
	if failed != nil && !errors.As(failed, &missing) {
		return fmt.Errorf("%w\nThe logs stay until the next run: %s", err, dir)
	}
	b.progress("%s, %s: done in %.0f s", r.name, name, time.Since(began).Seconds())
	return errors.Join(err, os.RemoveAll(dir))
}

// atEnd registers a function that runs when the side ends. The functions run in reverse order.
func (s *site) atEnd(do func(ctx context.Context) error) { s.ends = append(s.ends, do) }

func (s *site) end() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), endBound)
	defer cancel()
	var failed []error
	for _, do := range slices.Backward(s.ends) {
		failed = append(failed, do(ctx))
	}
	return errors.Join(failed...)
}

// ports returns ports that stay reserved until the side ends.
func (s *site) ports(n int) ([]int, error) {
	ports, release, err := testbed.ReservePorts(n)
	if err != nil {
		return nil, err
	}
	s.atEnd(func(context.Context) error { release(); return nil })
	return ports, nil
}

// otherDisk returns a directory for the disk of a joining host: in memory if there is room, otherwise next to the other
// hosts' disks.
func (s *site) otherDisk(name string) (string, error) {
	free, err := freeBytes(s.memory)
	if err != nil {
		free = 0 // a missing directory has no free space
	}
	if free < s.need {
		s.progress("%s: less than %s free in %s: %s shares the disk of the others", s.row, gib(s.need), s.memory, name)
		return filepath.Join(s.dir, name+"-disk"), nil
	}
	dir, err := os.MkdirTemp(s.memory, "quorumd-bench-")
	if err != nil {
		return "", err
	}
	s.atEnd(func(context.Context) error { return os.RemoveAll(dir) })
	return filepath.Join(dir, name), nil
}

// until waits until cond holds; the error includes what.
func (s *site) until(what string, limit time.Duration, cond func(ctx context.Context) bool) error {
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !cond(ctx) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waited up to %v for %s: %w", limit, what, context.Cause(ctx))
		}
	}
	return nil
}

// sleep waits for d. It returns an error if the context of the row ends first.
func (s *site) sleep(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}
