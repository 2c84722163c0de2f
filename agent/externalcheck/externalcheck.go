// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package externalcheck runs the operator's own checks: programs in one directory that report like Nagios plugins, by
// their exit code (0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN), a line of text and figures after a "|".
//
// It promises that no caller ever waits for one. Each runs in the background, in a process group of its own. The group
// is killed when its time is over or its program ends, so that nothing is left behind. There is at most one instance of
// each: one that cannot be killed is counted, and not run again until it has ended. Only a few run at once, and their
// output is bounded. A program runs only if no user other than root and quorumd's own can change it. A child of the
// agent's own program becomes the operator's program, so that the agent does not wait for its disk either.
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
	// MaxPrograms bounds how many are run.
	MaxPrograms = 32
	// maxLeft bounds how many more are shown as left out.
	maxLeft = 32
	// maxEntries bounds the directory entries that are read.
	maxEntries = 4096
	atOnce     = 2
	// grace is how long a killed program may take to end before it counts as hung.
	grace = 2 * time.Second
)

// programName matches the valid names of programs; run-parts has the same rule.
var programName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$`)

// Options configure what is run, and how often.
type Options struct {
	Child    []string // the command line that calls [Main], without the program's path
	Dir      string
	Named    []string // configured by name
	Interval time.Duration
	Timeout  time.Duration
	Now      func() time.Duration
	Logger   *slog.Logger
}

// Runner runs the programs that were in a directory when it was opened.
type Runner struct {
	opt      Options
	programs []*program
	slots    chan struct{}
}

// program is one of them. The fields below the mutex describe its newest run.
type program struct {
	name, path string
	child      []string // command line that becomes it
	kill       func(group int)
	left       bool // left out: it is shown, and never run

	mu      sync.Mutex
	busy    bool          // an instance exists or waits for its turn
	began   time.Duration // start of the current or last run; 0 if there was none
	running bool          // not just waiting for its turn
	seen    health.ExternalCheckReading
}

// Open reads the directory. A missing or unreadable one counts as empty.
func Open(opt Options) *Runner {
	r := &Runner{opt: opt, slots: make(chan struct{}, atOnce)}
	codes, left := map[health.Code]string{}, []string{}
	for _, name := range namesIn(opt) {
		code := health.ExternalCheckCode(name)
		if other, taken := codes[code]; taken {
			opt.Logger.Warn("external check skipped: its name is too close to another's",
				"name", name, "other", other)
			continue
		}
		codes[code] = name
		p := &program{
			name: name, path: filepath.Join(opt.Dir, name), child: opt.Child,
			kill: killGroup, seen: health.ExternalCheckReading{Name: name},
		}
		if p.left = len(r.programs) >= MaxPrograms; p.left {
			left = append(left, name)
			p.seen.Absent = fmt.Sprintf("not run: there are more than %d checks in %s, and those that gate run "+
				"first", MaxPrograms, opt.Dir)
		}
		if len(r.programs) < MaxPrograms+maxLeft {
			r.programs = append(r.programs, p)
		}
	}
	if len(left) > 0 {
		opt.Logger.Warn("external checks skipped: too many",
			"limit", MaxPrograms, "skipped", len(left), "names", strings.Join(left[:min(len(left), maxLeft)], " "))
	}
	return r
}

// namesIn returns the names of the configured programs in their order, and then of the others in the directory.
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
			opt.Logger.Warn("external check skipped: its name is too long, or has other characters than "+
				"letters, digits, - and _", "name", e.Name(), "dir", opt.Dir)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(named, name) })
	return append(slices.Compact(named), names...)
}

// entriesOf returns the directory's entries by name. With more than maxEntries it is probably not a directory of
// checks: then only configured programs run.
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
		return nil, fmt.Errorf("there are more than %d entries in %s; keep only the checks there", maxEntries, dir)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// List returns the programs that are run or left out, with what each gates.
func (r *Runner) List(gates func(name string) health.Gate) (all []health.ExternalCheck) {
	for _, p := range r.programs {
		all = append(all, health.ExternalCheck{
			Name: p.name, Path: p.path, Gates: gates(p.name), Interval: r.opt.Interval,
		})
	}
	return all
}

// Read starts the programs that are due, and returns each one's last reading. It never blocks.
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
	if p.left || p.busy || p.began != 0 && now-p.began < r.opt.Interval || ctx.Err() != nil {
		return
	}
	p.busy = true
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
		said := p.run(ctx, r.opt.Timeout, leave)
		p.end(said, r.opt.Now())
	}()
}

// end records the result of a run. A run without a result keeps the previous one, as outdated.
func (p *program) end(said health.ExternalCheckReading, now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	said.Name, said.Took, said.Runs = p.name, now-p.began, p.seen.Runs
	if said.Absent == "" {
		said.Runs++
	}
	p.seen, p.busy, p.running = said, false, false
}

func (p *program) reading(now, timeout time.Duration) health.ExternalCheckReading {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.seen
	if p.running && now-p.began > timeout+grace {
		seen.Hung, seen.Absent = true, "it was killed and has not exited; it runs again once it has"
	}
	return seen
}
