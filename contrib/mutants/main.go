// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxSurviving is the share of mutants that may survive, not counting the equivalent ones.
const maxSurviving = 1.0 / 20

func main() {
	var o options
	flag.StringVar(&o.dir, "package", "agent/policy", "directory of the package to change")
	flag.StringVar(&o.tests, "tests", "./agent/policy ./agent/policy/model",
		"packages whose tests are run, fastest first")
	flag.StringVar(&o.known, "known", "contrib/mutants/equivalent.txt",
		"file of equivalent mutants, with reasons")
	flag.StringVar(&o.only, "only", "", "only mutants whose name this regular expression matches")
	flag.IntVar(&o.every, "every", 1, "only every n-th mutant")
	flag.IntVar(&o.workers, "workers", 2, "number of mutants to try in parallel")
	flag.DurationVar(&o.limit, "limit", time.Minute,
		"count a mutant as killed if its tests take longer than this and than ten times their normal time")
	flag.BoolVar(&o.list, "list", false, "only list the mutants")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

type options struct {
	dir, tests, known, only string
	every, workers          int
	limit                   time.Duration
	list                    bool
}

// run tries all mutants and prints each survivor. It returns an error if too many survive.
func run(ctx context.Context, out io.Writer, o options) error {
	all, sources, err := collect(o)
	if err != nil {
		return err
	}
	known, err := readKnown(o.known)
	if err != nil {
		return err
	}
	if o.list {
		for _, m := range all {
			fmt.Fprintln(out, m)
		}
		return nil
	}
	t, err := newTrial(o, sources)
	if err != nil {
		return err
	}
	defer t.close()
	if err := t.build(ctx, all); err != nil {
		return err
	}
	if err := t.runUnchanged(ctx); err != nil {
		return err
	}
	tally := tryAll(ctx, out, o, t, all, known)
	if err := ctx.Err(); err != nil {
		return err
	}
	return tally.print(out)
}

// collect returns the selected mutants of all files of the package except its tests, and the sources of those files.
func collect(o options) ([]mutant, map[string][]byte, error) {
	paths, err := filepath.Glob(filepath.Join(o.dir, "*.go"))
	if err != nil {
		return nil, nil, err
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read -only: %w", err)
	}
	var all []mutant
	sources := map[string][]byte{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, err
		}
		found, err := mutants(filepath.Base(path), source)
		if err != nil {
			return nil, nil, err
		}
		sources[filepath.Base(path)] = source
		all = append(all, found...)
	}
	all = slices.DeleteFunc(all, func(m mutant) bool { return !only.MatchString(m.String()) })
	var chosen []mutant
	for i, m := range all {
		if i%max(1, o.every) == 0 {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return nil, nil, fmt.Errorf("no mutants in %s: check -package and -only", o.dir)
	}
	return chosen, sources, nil
}

// readKnown reads "MUTANT # reason" lines. A line without a reason is an error.
func readKnown(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	known := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, found := strings.Cut(line, " # ")
		if !found || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("%s: %q has no reason: write \"MUTANT # reason\"", path, line)
		}
		known[strings.TrimSpace(name)] = reason
	}
	return known, nil
}

// tally counts the outcomes of the mutants.
type tally struct {
	tried, broken, killed, same int
	timedOut                    int // number of killed mutants whose tests timed out
	surviving                   []mutant
}

func tryAll(ctx context.Context, out io.Writer, o options, t *trial, all []mutant, known map[string]string) *tally {
	var (
		sum  tally
		mu   sync.Mutex
		todo = make(chan mutant)
		wait sync.WaitGroup
	)
	for range max(1, o.workers) {
		wait.Go(func() {
			for m := range todo {
				got, err := t.try(ctx, m)
				mu.Lock()
				sum.count(out, m, got, err, known)
				mu.Unlock()
			}
		})
	}
	for _, m := range all {
		if ctx.Err() != nil {
			break
		}
		todo <- m
	}
	close(todo)
	wait.Wait()
	return &sum
}

func (s *tally) count(out io.Writer, m mutant, got outcome, err error, known map[string]string) {
	switch _, same := known[m.String()]; {
	case err != nil:
		fmt.Fprintf(out, "not tried: %s: %v\n", m, err)
	case got == notCompiled:
		s.broken++
	case got == killed || got == timedOut:
		s.tried, s.killed = s.tried+1, s.killed+1
		if got == timedOut {
			s.timedOut++
			fmt.Fprintf(out, "timed out: line %d: %s\n", m.line, m)
		}
		if same {
			fmt.Fprintf(out, "killed although listed as equivalent: %s\n", m)
		}
	case same:
		s.tried, s.same = s.tried+1, s.same+1
	default:
		s.tried, s.surviving = s.tried+1, append(s.surviving, m)
		fmt.Fprintf(out, "survived: line %d: %s\n", m.line, m)
	}
}

// print prints the totals, and returns an error if too many mutants survive.
func (s *tally) print(out io.Writer) error {
	real := s.tried - s.same
	fmt.Fprintf(out, "%d mutants: %d killed, %d of them by timeout, %d equivalent, %d survived; "+
		"%d more do not compile\n", s.tried, s.killed, s.timedOut, s.same, len(s.surviving), s.broken)
	if most := int(float64(real) * maxSurviving); len(s.surviving) > most {
		return fmt.Errorf("%d of %d mutants survived, limit %d: add a test that kills them, or list them as "+
			"equivalent with a reason", len(s.surviving), real, most)
	}
	return nil
}
