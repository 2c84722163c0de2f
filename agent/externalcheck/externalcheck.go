// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package externalcheck runs the operator's own checks: programs in one directory that report like Nagios plugins, by
// their exit code (0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN), a line of text and figures after a "|".
//
// It promises:
//   - No caller waits for a program. Each runs in the background, in its own process group. The group is killed when
//     the program ends or reaches its time limit.
//   - There is at most one instance of a program. If it cannot be killed, it is reported as hung, and runs again only
//     after it has ended.
//   - Only a few programs run at the same time, apart from hung ones, and their output is limited.
//   - A program runs only if no user other than root and quorumd's own can change it.
//   - The agent does not wait for the disk of a program either: a child process accesses it, and then executes the
//     program.
package externalcheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorumd/quorumd/health"
)

const (
	// MaxPrograms limits how many programs run; the others are skipped.
	MaxPrograms = 32
	// maxSkipped limits how many more programs are listed as not run.
	maxSkipped = 32
	// maxEntries limits the number of directory entries.
	maxEntries = 4096
	// maxRunning limits the programs that run at the same time, not counting those past their time limit.
	maxRunning = 2
	// grace is how long a killed program may take to end before it counts as hung.
	grace = 2 * time.Second
)

// programName matches the valid names of programs. The valid characters are those that run-parts(8) accepts.
var programName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$`)

// Options configure a Runner.
type Options struct {
	Child    []string // the command line that calls [Main], without the path of the program
	Dir      string
	Named    []string // programs that the configuration names
	Interval time.Duration
	Timeout  time.Duration
	Now      func() time.Duration
	Logger   *slog.Logger
}

// Runner runs the programs that the directory contains or the configuration names.
type Runner struct {
	opt      Options
	programs []*program
	slots    chan struct{}
}

// program is an external check. The mutex protects the fields below it, which describe the newest run.
type program struct {
	name, path string
	child      []string // command line of the child that executes the program
	kill       func(group int)
	skipped    bool // the program is listed but never runs

	mu      sync.Mutex
	started bool          // the program runs or waits for a slot
	began   time.Duration // start of the current or last run; 0 before the first
	running bool          // the program runs
	last    health.ExternalCheckReading
}

// Open reads the directory. A missing or unreadable directory counts as empty.
func Open(opt Options) *Runner {
	r := &Runner{opt: opt, slots: make(chan struct{}, maxRunning)}
	codes, skipped := map[health.Code]string{}, []string{}
	for _, name := range namesIn(opt) {
		code := health.ExternalCheckCode(name)
		if other, taken := codes[code]; taken {
			opt.Logger.Warn("external check skipped: its name yields the same code as another's",
				"name", name, "other", other)
			continue
		}
		codes[code] = name
		p := &program{
			name: name, path: filepath.Join(opt.Dir, name), child: opt.Child,
			kill: killGroup, last: health.ExternalCheckReading{Name: name},
		}
		if p.skipped = len(r.programs) >= MaxPrograms; p.skipped {
			skipped = append(skipped, name)
			p.last.Absent = fmt.Sprintf("not run: there are more than %d checks in %s, and those that gate steps "+
				"have priority", MaxPrograms, opt.Dir)
		}
		if len(r.programs) < MaxPrograms+maxSkipped {
			r.programs = append(r.programs, p)
		}
	}
	if len(skipped) > 0 {
		opt.Logger.Warn("external checks skipped: too many", "limit", MaxPrograms, "skipped", len(skipped),
			"names", strings.Join(skipped[:min(len(skipped), maxSkipped)], " "))
	}
	return r
}

// namesIn returns the names of the configured programs, followed by the names of the others in the directory. Each
// group is sorted.
func namesIn(opt Options) []string {
	entries, err := entriesOf(opt.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		opt.Logger.Warn("cannot list external checks", "error", err)
	}
	named, names := slices.Sorted(slices.Values(opt.Named)), []string{}
	for _, e := range entries {
		switch {
		case programName.MatchString(e.Name()):
			names = append(names, e.Name())
		case !strings.HasPrefix(e.Name(), "."):
			opt.Logger.Warn("external check skipped: its name is too long, or has characters other than "+
				"letters, digits, - and _", "name", e.Name(), "dir", opt.Dir)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(named, name) })
	return append(slices.Compact(named), names...)
}

// entriesOf returns the entries of a directory, sorted by name. A directory with more than maxEntries entries is
// probably not the directory of checks, and causes an error. Configured programs still run.
func entriesOf(dir string) ([]fs.DirEntry, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(maxEntries + 1)
	switch {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, err
	case len(entries) > maxEntries:
		return nil, fmt.Errorf("there are more than %d entries in %s; keep only checks in it", maxEntries, dir)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// List returns the programs, including up to maxSkipped skipped ones, with the steps that each program gates.
func (r *Runner) List(gates func(name string) health.Gate) (all []health.ExternalCheck) {
	for _, p := range r.programs {
		all = append(all, health.ExternalCheck{
			Name: p.name, Path: p.path, Gates: gates(p.name), Interval: r.opt.Interval,
		})
	}
	return all
}

// Read starts the programs that are due, and returns the last reading of each program. It never blocks.
func (r *Runner) Read(ctx context.Context) (all []health.ExternalCheckReading) {
	now := r.opt.Now()
	for _, p := range r.programs {
		r.begin(ctx, p, now)
		all = append(all, p.reading(now, r.opt.Timeout))
	}
	return all
}

// begin starts a program if it is due and has no running instance.
func (r *Runner) begin(ctx context.Context, p *program, now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.skipped || p.started || p.began != 0 && now-p.began < r.opt.Interval || ctx.Err() != nil {
		return
	}
	p.started = true
	go func() {
		select {
		case r.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		leave := sync.OnceFunc(func() { <-r.slots })
		defer leave()
		p.mu.Lock()
		p.began, p.running = r.opt.Now(), true
		p.mu.Unlock()
		result := p.run(ctx, r.opt.Timeout, leave)
		p.finish(result, r.opt.Now())
	}()
}

// finish records the result of a run.
func (p *program) finish(result health.ExternalCheckReading, now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	result.Name, result.Took, result.Runs = p.name, now-p.began, p.last.Runs
	if result.Absent == "" {
		result.Runs++
	}
	p.last, p.started, p.running = result, false, false
}

func (p *program) reading(now, timeout time.Duration) health.ExternalCheckReading {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.last
	if p.running && now-p.began > timeout+grace {
		last.Hung, last.Absent = true, "it was killed but has not exited; it runs again after it exits"
	}
	return last
}
