// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

type outcome int

const (
	survived outcome = iota
	killed
	timedOut // the tests did not end in time, which counts as killed
	notCompiled
)

// trial runs tests on changed sources, which it keeps in a temporary directory.
type trial struct {
	o       options
	sources map[string][]byte
	dir     string
	root    string // the absolute directory of the package: overlays need absolute paths

	numbers map[mutant]int // number of each mutant in the binaries
	broken  map[int]bool   // numbers of the mutants that do not compile
	tests   []binary
}

// binary is the test binary of one package. It contains all mutants that compile and that combine can include.
type binary struct {
	path, dir string
	limit     time.Duration // time limit of its tests
}

func newTrial(o options, sources map[string][]byte) (*trial, error) {
	dir, err := os.MkdirTemp("", "mutants-*")
	if err != nil {
		return nil, err
	}
	root, err := filepath.Abs(o.dir)
	if err != nil {
		return nil, err
	}
	return &trial{o: o, sources: sources, dir: dir, root: root, numbers: map[mutant]int{}, broken: map[int]bool{}}, nil
}

func (t *trial) close() { _ = os.RemoveAll(t.dir) }

// build builds the test binaries with all mutants that compile and that combine can include.
func (t *trial) build(ctx context.Context, all []mutant) error {
	byFile := map[string][]numbered{}
	for i, m := range all {
		byFile[m.file] = append(byFile[m.file], numbered{m, i + 1})
	}
	overlay := filepath.Join(t.dir, "overlay.json")
	for {
		if err := t.writeAll(overlay, byFile); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, "go", "build", "-gcflags=-e", "-overlay", overlay, "./"+t.o.dir)
		text, err := cmd.CombinedOutput()
		if err == nil {
			break
		}
		found := mutantFile.FindAllSubmatch(text, -1)
		if len(found) == 0 {
			return fmt.Errorf("cannot build the mutants: %w:\n%s", err, text)
		}
		for _, match := range found {
			number, _ := strconv.Atoi(string(match[1]))
			t.broken[number] = true
		}
	}
	for _, tests := range strings.Fields(t.o.tests) {
		path := filepath.Join(t.dir, fmt.Sprintf("%d.test", len(t.tests)))
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", path, tests)
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("cannot build the tests of %s: %w:\n%s", tests, err, text)
		}
		t.tests = append(t.tests, binary{path: path, dir: tests, limit: unchangedLimit})
	}
	return nil
}

// mutantFile matches the position of an error in the compiler's output.
var mutantFile = regexp.MustCompile(`\bmutant(\d+)\.go:\d`)

// writeAll writes the sources with all mutants except those known not to compile and those that combine cannot include.
func (t *trial) writeAll(overlay string, byFile map[string][]numbered) error {
	replaced := map[string]string{}
	name := ""
	for file, of := range byFile {
		var left []numbered
		for _, m := range of {
			if !t.broken[m.number] {
				left = append(left, m)
			}
			t.numbers[m.mutant] = m.number
		}
		whole, pkg, outside, err := combine(file, t.sources[file], left)
		if err != nil {
			return err
		}
		for _, m := range left {
			for _, number := range outside {
				if m.number == number {
					delete(t.numbers, m.mutant)
				}
			}
		}
		name = pkg
		if err := t.replace(replaced, file, whole); err != nil {
			return err
		}
	}
	if err := t.replace(replaced, "selected_mutant.go", selectorSource(name)); err != nil {
		return err
	}
	return writeOverlay(overlay, replaced)
}

func (t *trial) replace(replaced map[string]string, file string, text []byte) error {
	path := filepath.Join(t.dir, file)
	replaced[filepath.Join(t.root, file)] = path
	return os.WriteFile(path, text, 0o600)
}

func writeOverlay(path string, replaced map[string]string) error {
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// unchangedLimit is how long the tests of a package may take on the original source.
const unchangedLimit = 30 * time.Minute

// runUnchanged runs all tests on the original source, on which they must pass. The time that they take determines the
// limit for a mutant.
func (t *trial) runUnchanged(ctx context.Context) error {
	for i := range t.tests {
		tests, began := &t.tests[i], time.Now()
		if text, err := t.runSelected(ctx, *tests, 0); err != nil {
			return fmt.Errorf("the tests of %s fail on the unchanged source:\n%s", tests.dir, text)
		}
		tests.limit = max(t.o.limit, 10*time.Since(began))
	}
	return nil
}

// try returns the outcome of a mutant. It runs the tests of one package after another until one fails.
func (t *trial) try(ctx context.Context, m mutant) (outcome, error) {
	number, held := t.numbers[m]
	switch {
	case t.broken[number]:
		return notCompiled, nil
	case !held:
		return t.trySeparately(ctx, m)
	}
	for _, tests := range t.tests {
		if text, err := t.runSelected(ctx, tests, number); err != nil {
			return failureOf(text), ctx.Err()
		}
	}
	return survived, ctx.Err()
}

// runSelected runs the tests of one package with a mutant of the binary, or with the original source if number is 0.
func (t *trial) runSelected(ctx context.Context, tests binary, number int) (string, error) {
	cmd := exec.CommandContext(ctx, tests.path, "-test.failfast", "-test.timeout", tests.limit.String())
	cmd.Dir = tests.dir
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", selectedBy, number))
	return outputOf(cmd)
}

// trySeparately returns the outcome of a mutant that the binaries do not contain, with separate binaries.
func (t *trial) trySeparately(ctx context.Context, m mutant) (outcome, error) {
	dir, err := os.MkdirTemp(t.dir, "")
	if err != nil {
		return survived, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	changed := filepath.Join(dir, m.file)
	if err := os.WriteFile(changed, m.apply(t.sources[m.file]), 0o600); err != nil {
		return survived, err
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := writeOverlay(overlay, map[string]string{filepath.Join(t.root, m.file): changed}); err != nil {
		return survived, err
	}
	if err := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "./"+t.o.dir).Run(); err != nil {
		return notCompiled, ctx.Err()
	}
	for _, tests := range t.tests {
		cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-failfast", "-vet=off", "-timeout",
			tests.limit.String(), "-overlay", overlay, tests.dir)
		if text, err := outputOf(cmd); err != nil {
			return failureOf(text), ctx.Err()
		}
	}
	return survived, ctx.Err()
}

// failureOf returns the outcome if tests have failed with this output.
func failureOf(text string) outcome {
	if strings.Contains(text, "panic: test timed out after") {
		return timedOut
	}
	return killed
}

// outputOf runs tests and returns their output, and an error if they failed.
func outputOf(cmd *exec.Cmd) (string, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return out.String(), fmt.Errorf("cannot run the tests: %w", err)
	}
	return out.String(), err
}
