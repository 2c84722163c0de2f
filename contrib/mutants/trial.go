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
	"strings"
)

type outcome int

const (
	lives outcome = iota
	killed
	notCompiled
)

// trial runs tests on changed sources, which lie in a directory of its own.
type trial struct {
	o       options
	sources map[string][]byte
	dir     string
	root    string // of the package, absolute: overlays are by full path
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
	return &trial{o: o, sources: sources, dir: dir, root: root}, nil
}

func (t *trial) close() { _ = os.RemoveAll(t.dir) }

// unchanged runs all tests on the source as it is: mutants tell nothing where these fail.
func (t *trial) unchanged(ctx context.Context) error {
	for _, tests := range strings.Fields(t.o.tests) {
		if text, err := t.test(ctx, "", tests); err != nil {
			return fmt.Errorf("the tests of %s fail on the source as it is:\n%s", tests, text)
		}
	}
	return nil
}

// try gives what becomes of one mutant. The tests run one package after another until one notices.
func (t *trial) try(ctx context.Context, m mutant) (outcome, error) {
	dir, err := os.MkdirTemp(t.dir, "")
	if err != nil {
		return lives, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	changed := filepath.Join(dir, m.file)
	if err := os.WriteFile(changed, m.apply(t.sources[m.file]), 0o600); err != nil {
		return lives, err
	}
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(t.root, m.file): changed}})
	if err != nil {
		return lives, err
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return lives, err
	}
	if err := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "./"+t.o.dir).Run(); err != nil {
		return notCompiled, ctx.Err()
	}
	for _, tests := range strings.Fields(t.o.tests) {
		if _, err := t.test(ctx, overlay, tests); err != nil {
			return killed, ctx.Err()
		}
	}
	return lives, ctx.Err()
}

// test runs the tests of one package. Its error is that they failed, or took too long.
func (t *trial) test(ctx context.Context, overlay, tests string) (string, error) {
	args := []string{"test", "-count=1", "-failfast", "-vet=off", "-timeout", t.o.limit.String()}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, tests)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return out.String(), fmt.Errorf("cannot run go test: %w", err)
	}
	return out.String(), err
}
