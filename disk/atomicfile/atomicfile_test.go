// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
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

func TestNoLinkIsFollowedAndNoFIFOIsOpened(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target, link, fifo := filepath.Join(dir, "target"), filepath.Join(dir, "link"), filepath.Join(dir, "fifo")
	must(t, os.WriteFile(target, []byte("text"), 0o600))
	for _, durable := range []bool{true, false} {
		must(t, os.Symlink(target, link))
		must(t, Write(link, []byte("new"), 0o644, durable))
		info, err := os.Lstat(link)
		must(t, err)
		text, err := os.ReadFile(target)
		must(t, err)
		if !info.Mode().IsRegular() || string(text) != "text" {
			t.Errorf("%v after a write, and its old target contains %q", info.Mode(), text)
		}
		must(t, os.Remove(link))
	}
	must(t, syscall.Mkfifo(fifo, 0o600))
	must(t, Write(fifo, []byte("new"), 0o644, true))
	must(t, os.Remove(fifo))
	must(t, syscall.Mkfifo(fifo, 0o600))
	if err := SyncDir(fifo); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a FIFO: %v", err)
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
