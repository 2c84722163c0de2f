// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/quorumd/quorumd/agent/control/server"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		err  error
		code int
	}{
		"nothing":           {nil, 0},
		"the configuration": {exitError{exitConfig, errors.New("no")}, 78},
		"not permitted":     {fmt.Errorf("cannot read it: %w", fs.ErrPermission), 77},
		"already served":    {fmt.Errorf("cannot listen: %w", server.ErrServed), 69},
		"anything else":     {errors.New("no"), 70},
	} {
		if code := ExitCode(c.err); code != c.code {
			t.Errorf("%s: %d, want %d", what, code, c.code)
		}
	}
}

func TestAnInvalidConfigurationIsAConfigurationError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	damaged := filepath.Join(dir, "damaged")
	if err := os.WriteFile(damaged, []byte("mode: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "missing"), dir, damaged} {
		_, err := loadConfig(path, slog.New(slog.DiscardHandler))
		if code := ExitCode(err); code != exitConfig {
			t.Errorf("%s: exit code %d, want %d: %v", path, code, exitConfig, err)
		}
	}
}
