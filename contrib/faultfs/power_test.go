// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// tree returns the contents of a directory: each file below it by its name, with its content. The name of a directory
// ends in a slash.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch {
		case err != nil || path == root:
		case d.IsDir():
			all[name+"/"] = ""
		case d.Type()&fs.ModeSymlink != 0:
			all[name], err = os.Readlink(path)
		default:
			var text []byte
			text, err = os.ReadFile(path)
			all[name] = string(text)
		}
		return err
	}))
	return all
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// put writes a file and closes it. With sync the file is durable.
func put(path, text string, flags int, sync bool) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|flags, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if sync {
		err = errors.Join(err, f.Sync())
	}
	return errors.Join(err, f.Close())
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// begun returns the content of the disk before each case.
func begun() map[string]string {
	return map[string]string{"d/": "", "e/": "", "empty/": "", "d/f": "0123456789", "e/g": "ggg", "l": "d/f"}
}

func TestUnsyncedDataIsLostWhenThePowerIsCut(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		do   func(in func(string) string) error
		left map[string]string // the differences from begun; "-" for a removed name
	}{
		"nothing is done": {func(func(string) string) error { return nil }, nil},
		"a file is written over, longer, shorter and over again": {func(in func(string) string) error {
			return errors.Join(put(in("d/f"), "abc", 0, false), put(in("d/f"), "more", os.O_APPEND, false),
				os.Truncate(in("d/f"), 5), put(in("d/f"), "again", os.O_TRUNC, false))
		}, nil},
		"a file is written and synced, and written again": {func(in func(string) string) error {
			return errors.Join(put(in("d/f"), "abc", 0, true), put(in("d/f"), "xyz", 0, false))
		}, map[string]string{"d/f": "abc3456789"}},
		"a new file that is synced has its name": {func(in func(string) string) error {
			return errors.Join(os.Mkdir(in("d/new"), 0o700), put(in("d/new/f"), "f", 0, true),
				put(in("d/new/g"), "g", 0, false))
		}, map[string]string{"d/new/": "", "d/new/f": "f"}},
		"a new file whose directory alone is synced is empty": {func(in func(string) string) error {
			return errors.Join(put(in("d/new"), "new", 0, false), syncDir(in("d")))
		}, map[string]string{"d/new": ""}},
		"a synced file replaces another one, and no directory is synced": {func(in func(string) string) error {
			return errors.Join(put(in("d/f.new"), "new", 0, true), os.Rename(in("d/f.new"), in("d/f")))
		}, map[string]string{"d/f.new": "new"}},
		"a synced file replaces another one, and their directory is synced": {func(in func(string) string) error {
			return errors.Join(put(in("d/f.new"), "new", 0, true), os.Rename(in("d/f.new"), in("d/f")),
				syncDir(in("d")), os.Rename(in("e/g"), in("e/h")))
		}, map[string]string{"d/f": "new"}},
		"a file that was not synced replaces another one": {func(in func(string) string) error {
			return errors.Join(put(in("d/f.new"), "new", 0, false), os.Rename(in("d/f.new"), in("d/f")),
				syncDir(in("d")))
		}, map[string]string{"d/f": ""}},
		"a whole tree is removed": {func(in func(string) string) error {
			return errors.Join(os.RemoveAll(in("d")), os.RemoveAll(in("empty")), os.Remove(in("l")))
		}, nil},
		"a whole tree is removed, and the directory above is synced": {func(in func(string) string) error {
			return errors.Join(os.RemoveAll(in("d")), syncDir(in("")))
		}, map[string]string{"d/": "-", "d/f": "-"}},
		"a directory is renamed, and a new one gets its name": {func(in func(string) string) error {
			return errors.Join(os.Rename(in("d"), in("e/old")), os.Mkdir(in("d"), 0o700),
				put(in("d/f"), "another", 0, false), put(in("e/old/f"), "x", 0, false))
		}, nil},
		"a directory is renamed, and its new parent is synced": {func(in func(string) string) error {
			return errors.Join(os.Rename(in("d"), in("e/old")), syncDir(in("e")), put(in("e/old/f"), "x", 0, false))
		}, map[string]string{"d/": "-", "d/f": "-", "e/old/": "", "e/old/f": "0123456789"}},
		"links are created, and a name is removed": {func(in func(string) string) error {
			return errors.Join(os.Link(in("d/f"), in("hard")), os.Symlink("e", in("soft")), os.Remove(in("d/f")))
		}, nil},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			m := start(t, "-power")
			for name, text := range begun() { // written below faultfs, so that it is durable
				switch path := filepath.Join(m.back, name); {
				case strings.HasSuffix(name, "/"):
					must(t, os.MkdirAll(path, 0o750))
				case name == "l":
					must(t, os.Symlink(text, path))
				default:
					must(t, os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(text), 0o600))
				}
			}
			must(t, c.do(func(name string) string { return filepath.Join(m.mnt, name) }))
			want := begun()
			maps.Copy(want, c.left)
			maps.DeleteFunc(want, func(_, text string) bool { return text == "-" })
			m.command(t, "cut")
			if err := os.WriteFile(filepath.Join(m.mnt, "late"), nil, 0o600); !errors.Is(err, syscall.EIO) {
				t.Errorf("a write after the cut: %v, want EIO", err)
			}
			if got := tree(t, m.back); !maps.Equal(got, want) {
				t.Errorf("the disk contains %v, want %v", got, want)
			}
			m.stop(t)
			kept, err := filepath.Glob(filepath.Join(filepath.Dir(m.back), ".faultfs*"))
			if err != nil || len(kept) > 0 {
				t.Errorf("removed files are kept forever: %v, %v", kept, err)
			}
		})
	}
}

func TestCutNeedsAMountWithPower(t *testing.T) {
	t.Parallel()
	m := start(t)
	if _, err := send(m.sock, "cut"); err == nil || !strings.Contains(err.Error(), "-power") {
		t.Errorf("got %v", err)
	}
}
