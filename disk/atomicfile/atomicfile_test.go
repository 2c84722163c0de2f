// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFileIsReplacedWithContentAndMode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, c := range []struct {
		text    string
		mode    os.FileMode
		durable bool
	}{{"first", 0o666, true}, {"2nd", 0o600, false}, {"", 0o644, true}} {
		must(t, Write(path, []byte(c.text), c.mode, c.durable))
		got, err := os.ReadFile(path)
		must(t, err)
		info, err := os.Stat(path)
		must(t, err)
		if string(got) != c.text || info.Mode() != c.mode {
			t.Errorf("%q with mode %v, want %q with %v", got, info.Mode(), c.text, c.mode)
		}
	}
	left, err := os.ReadDir(dir)
	must(t, err)
	if len(left) != 1 {
		t.Errorf("files are left: %v", left)
	}
}

func TestFailedWriteLeavesNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "directory")
	must(t, os.Mkdir(path, 0o700))
	if err := Write(path, []byte("text"), 0o600, true); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a directory was replaced: %v", err)
	}
	left, err := os.ReadDir(dir)
	must(t, err)
	if len(left) != 1 {
		t.Errorf("files are left: %v", left)
	}
	if err := Write(filepath.Join(dir, "none", "file"), nil, 0o600, false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a missing directory: %v", err)
	}
	if err := SyncDir(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
}

func TestStagedFileIsCompleteAndInTheSameDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	temp, err := Stage(filepath.Join(dir, "file"), []byte("text"), 0o640)
	must(t, err)
	text, err := os.ReadFile(temp)
	must(t, err)
	info, err := os.Stat(temp)
	must(t, err)
	if string(text) != "text" || info.Mode() != 0o640 || filepath.Dir(temp) != dir {
		t.Errorf("%q with mode %v in %s", text, info.Mode(), temp)
	}
}
