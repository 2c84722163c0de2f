// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package externalcheck

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// tree returns nested directories with a program in the deepest one.
func tree(t *testing.T) (top, program string) {
	t.Helper()
	top = t.TempDir()
	dir := filepath.Join(top, "srv", "sites", "checks.d")
	must(t, os.MkdirAll(dir, 0o755))
	program = filepath.Join(dir, "raid")
	must(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o600))
	must(t, os.Chmod(program, 0o755))
	for at := dir; at != filepath.Dir(top); at = filepath.Dir(at) {
		must(t, os.Chmod(at, 0o755))
	}
	return top, program
}

func TestWritableDirectoryInThePathIsRefused(t *testing.T) {
	t.Parallel()
	for _, mode := range []os.FileMode{0o775, 0o757, 0o777 | os.ModeSticky} {
		top, path := tree(t)
		if got, err := resolve(path, top); err != nil || got != path {
			t.Fatalf("%s, %v", got, err)
		}
		for at := filepath.Dir(path); at != filepath.Dir(top); at = filepath.Dir(at) {
			must(t, os.Chmod(at, mode))
			want := at + " is writable by users other than its owner: chmod go-w " + at
			if got, err := resolve(path, top); err == nil || err.Error() != want {
				t.Errorf("with %s of mode %v: %s, %v", at, mode, got, err)
			}
			must(t, os.Chmod(at, 0o755))
		}
	}
}

func TestLinkIsFollowedAndItsWholePathChecked(t *testing.T) {
	t.Parallel()
	top, path := tree(t)
	bin := filepath.Join(top, "bin")
	must(t, os.Mkdir(bin, 0o755))
	must(t, os.Symlink("../srv/./sites/../sites", filepath.Join(bin, "near")))
	must(t, os.Symlink("near/checks.d/raid", filepath.Join(bin, "relative")))
	must(t, os.Symlink(path, filepath.Join(bin, "absolute")))
	for _, name := range []string{"relative", "absolute"} {
		if got, err := resolve(filepath.Join(bin, name), top); err != nil || got != path {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		for _, at := range []string{filepath.Join(top, "srv"), filepath.Join(top, "srv", "sites"), bin} {
			must(t, os.Chmod(at, 0o777))
			got, err := resolve(filepath.Join(bin, name), top)
			want := at + " is writable by users other than its owner: chmod go-w " + at
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, with %s world-writable: %s, %v", name, at, got, err)
			}
			must(t, os.Chmod(at, 0o755))
		}
	}
	must(t, os.Symlink("b", filepath.Join(bin, "a")))
	must(t, os.Symlink("a", filepath.Join(bin, "b")))
	must(t, os.Symlink("/", filepath.Join(bin, "root")))
	must(t, os.Symlink("nowhere", filepath.Join(bin, "dangling")))
	for name, want := range map[string]string{
		"a":        filepath.Join(bin, "a") + " leads through too many links",
		"root":     "not a program: make it executable (chmod +x), or move it away",
		"near":     "not a program: make it executable (chmod +x), or move it away",
		"dangling": "there is no " + filepath.Join(bin, "nowhere"),
	} {
		if got, err := resolve(filepath.Join(bin, name), top); err == nil || err.Error() != want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// TestChildsOwnFailureIsNotTheExternalChecksResult uses children that exit with the code of CRITICAL without executing
// the program: the test binary after a failure, and a shell.
func TestChildsOwnFailureIsNotTheExternalChecksResult(t *testing.T) {
	t.Parallel()
	dir := scripts(t, map[string]string{
		"says": "echo what it finds; exit 2", "limits": "echo $(ulimit -c) $(cat /proc/self/oom_score_adj)",
	})
	writeProgram(t, filepath.Join(dir, "no-program"), "\x7fELF, or so it says\n")
	b := open(t, dir, time.Minute)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	if r := b.until(ctx, "says", reported); r.State != health.Slow || r.Absent != "" {
		t.Errorf("%+v", r)
	}
	if r := b.until(ctx, "no-program", reported); r.Runs != 0 || !strings.Contains(r.Absent, "exec format error") {
		t.Errorf("%+v", r)
	}
	if r := b.until(ctx, "limits", reported); r.Text != "0 1000" {
		t.Errorf("core dump limit and OOM score: %+v", r)
	}
	b.settle(end)
	ctx, end = context.WithCancel(t.Context())
	defer end()
	b = open(t, dir, time.Minute)
	for _, p := range b.programs {
		p.child = []string{"/bin/sh", "-c", "exit 2"}
	}
	r := b.until(ctx, "says", reported)
	if r.Runs != 0 || r.Absent != "the child process exited before it executed the program: exit status 2" {
		t.Errorf("%+v", r)
	}
	b.settle(end)
}
