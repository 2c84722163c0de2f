// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package externalcheck runs the operator's own checks: programs in one directory that say how things are as Nagios
// plugins do, by their exit code (0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN), a line of text and figures behind a "|".
//
// It promises that nobody ever waits for one. Each runs beside the caller, in a process group of its own that is killed
// when its time is over, and with it what it has left behind when it ends; at most one instance of each is there, so
// that one which cannot even be killed is counted and not run again until it has ended; few run at once; and of what
// they write only so much is read. Only what nobody but root or quorumd's own user may change is run. A child of the
// agent's own program becomes the operator's: nobody waits for the disk on which that lies either.
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
	// maxEntries bounds how many names are read.
	maxEntries = 4096
	atOnce     = 2
	// grace is how long a program that was killed may take to be gone before it counts as one that hangs.
	grace = 2 * time.Second
)

// programName is what a program must be called; run-parts has the same rule.
var programName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$`)

// Options say what is run, and how often.
type Options struct {
	Child    []string // the command line that calls [Main], without the program's path
	Dir      string
	Named    []string // that there should be
	Interval time.Duration
	Timeout  time.Duration
	Now      func() time.Duration
	Logger   *slog.Logger
}

// Runner runs the programs that lay in a directory when it was opened.
type Runner struct {
	opt      Options
	programs []*program
	slots    chan struct{}
}

// program is one of them. The fields below the mutex are those of its newest run.
type program struct {
	name, path string
	child      []string // that becomes it
	kill       func(group int)
	left       bool // out: it is only shown, and never run

	mu      sync.Mutex
	busy    bool          // an instance is there, or waits for its turn
	began   time.Duration // the run that is under way, or the last one; 0 if none has
	running bool          // it is not only waiting for its turn
	seen    health.ExternalCheckReading
}

// Open looks what lies in the directory. One that is not there, or cannot be read, holds nothing.
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
			p.seen.Absent = fmt.Sprintf("this agent does not run it: there are more than %d checks in %s, and "+
				"those that gate come first", MaxPrograms, opt.Dir)
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

// namesIn gives the names of the programs there should be, in their order, and behind them of the others there are.
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

// entriesOf gives what lies in a directory, by name. One with more than maxEntries is not one of checks: nothing of it
// is run but what the configuration names, rather than what happens to be listed first.
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

// List gives what is run or left out, for the judge, with what each gates by the names of those that do.
func (r *Runner) List(gates func(name string) health.Gate) (all []health.ExternalCheck) {
	for _, p := range r.programs {
		all = append(all, health.ExternalCheck{
			Name: p.name, Path: p.path, Gates: gates(p.name), Interval: r.opt.Interval,
		})
	}
	return all
}

// Read starts what is due, and gives what each has said last. It never waits.
func (r *Runner) Read(ctx context.Context) (all []health.ExternalCheckReading) {
	now := r.opt.Now()
	for _, p := range r.programs {
		r.begin(ctx, p, now)
		all = append(all, p.reading(now, r.opt.Timeout))
	}
	return all
}

// begin starts a program if it is due and no instance of it is there.
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

// end takes in what a run has said. One that told nothing leaves what was said before, as out of date.
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
		seen.Hung, seen.Absent = true, "it was killed and does not end; it is not run again before it has"
	}
	return seen
}
