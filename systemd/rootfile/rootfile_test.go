// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package rootfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// tree returns a Tree of the user who runs the test, with a directory and a file in it.
func tree(t *testing.T) (trusted Tree, dir, file string) {
	t.Helper()
	top := t.TempDir()
	dir, file = filepath.Join(top, "etc"), filepath.Join(top, "etc", "a.yaml")
	if err := errors.Join(os.Chmod(top, 0o755), os.Mkdir(dir, 0o755),
		os.WriteFile(file, []byte("text"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return Beneath(top, os.Geteuid()), dir, file
}

func TestAFileWritableOnlyByItsOwnerIsRead(t *testing.T) {
	t.Parallel()
	trusted, _, file := tree(t)
	if got, err := trusted.Read(file, 4); err != nil || string(got) != "text" {
		t.Errorf("%q, %v", got, err)
	}
	if err := trusted.Check(file); err != nil {
		t.Error(err)
	}
	if _, err := trusted.Read(file, 3); err == nil || !strings.Contains(err.Error(), "more than 3 bytes") {
		t.Errorf("too large: %v", err)
	}
	if _, err := trusted.Read(file+"x", 4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

func TestAFileChangeableByOthersIsNeitherReadNorWritten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		says  string
		spoil func(dir, file string) error
	}{
		{"chmod go-w", func(_, file string) error { return os.Chmod(file, 0o620) }},
		{"chmod go-w", func(dir, _ string) error { return os.Chmod(dir, 0o757) }},
		{"is a symbolic link", func(_, file string) error {
			return errors.Join(os.Rename(file, file+".real"), os.Symlink(file+".real", file))
		}},
		{"is a symbolic link", func(dir, _ string) error {
			return errors.Join(os.Rename(dir, dir+".real"), os.Symlink(dir+".real", dir))
		}},
		{"not a regular file", func(_, file string) error {
			return errors.Join(os.Remove(file), unix.Mkfifo(file, 0o600))
		}},
	} {
		trusted, dir, file := tree(t)
		if err := c.spoil(dir, file); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		text, err := trusted.Read(file, 100)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %q, %v", c.says, text, err)
		}
		if waited := time.Since(began); waited > 5*time.Second {
			t.Errorf("%s: it blocked for %s", c.says, waited)
		}
	}
	trusted, dir, file := tree(t)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(trusted.Write(file, nil, 0o600), trusted.Remove(file)); err == nil {
		t.Error("written in a world-writable directory")
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
	other := Beneath(filepath.Dir(dir), os.Geteuid()+1)
	if _, err := other.Read(file, 100); err == nil || !strings.Contains(err.Error(), "belongs to user") {
		t.Errorf("another's: %v", err)
	}
	for _, path := range []string{"/etc/passwd", dir + "/../../x", "a"} {
		if _, err := trusted.Read(path, 100); err == nil {
			t.Errorf("%s is read", path)
		}
	}
}

func TestAFileIsReplacedAtomicallyAndALinkIsNotFollowed(t *testing.T) {
	t.Parallel()
	trusted, dir, file := tree(t)
	if err := trusted.Write(file, []byte("more than before"), 0o600); err != nil {
		t.Fatal(err)
	}
	was, _ := os.Stat(file)
	if err := trusted.Write(file, []byte("more than before"), 0o600); err != nil {
		t.Fatal(err)
	}
	if is, _ := os.Stat(file); !os.SameFile(was, is) || is.Mode() != 0o600 {
		t.Errorf("unchanged content was written, mode %s", is.Mode())
	}
	secret := filepath.Join(dir, "secret")
	link := filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(secret, []byte("s"), 0o600), os.Symlink(secret, link)); err != nil {
		t.Fatal(err)
	}
	if err := trusted.Write(link, []byte("new"), 0o644); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(secret); string(text) != "s" {
		t.Errorf("the link was followed: %q", text)
	}
	if info, err := os.Lstat(link); err != nil || !info.Mode().IsRegular() {
		t.Errorf("%v, %v", info, err)
	}
	if err := errors.Join(trusted.Remove(link), trusted.Remove(link)); err != nil {
		t.Error(err)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 2 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestAFileForAGroupIsReadableByThatGroupAlone(t *testing.T) {
	t.Parallel()
	trusted, _, file := tree(t)
	// Whether the file can be assigned to the second group depends on the user who runs the test.
	for _, group := range []int{os.Getegid(), 54321} {
		shared, err := trusted.WriteFor(file, []byte("text"), group)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		gid, mode := int(info.Sys().(*syscall.Stat_t).Gid), info.Mode().Perm()
		if shared && (gid != group || mode != 0o640) || !shared && (mode != 0o600 || group == os.Getegid()) {
			t.Errorf("for group %d: group %d, mode %o, and the group can read it: %t", group, gid, mode, shared)
		}
	}
}
