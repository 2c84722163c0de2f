// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package tempdir creates temporary directories for unix sockets, whose paths are limited to 107 bytes, and for tests
// that start a program as another user. Every user can enter these directories, whatever the umask. t.TempDir serves
// neither purpose: make test places it below the checkout, whose path may be long and whose parents may be closed to
// other users.
//
// The directories are for small files only: /tmp may be in memory.
package tempdir

import (
	"errors"
	"os"
	"testing"
)

// base is the parent of all directories. It is not os.TempDir(), for the reasons given in the package comment.
const base = "/tmp"

// New returns a directory that is removed when the test ends.
func New(t testing.TB) string {
	t.Helper()
	dir, err := Make()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Make is like New, outside a test. The caller removes the directory.
func Make() (string, error) {
	dir, err := os.MkdirTemp(base, "quorumd-")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", errors.Join(err, os.Remove(dir))
	}
	return dir, nil
}

// Self returns a path at which every user can execute the test's program. The program's own path may be closed to
// others because of a strict umask.
func Self(t testing.TB) string {
	t.Helper()
	const self = "/proc/self/exe" // this path works even if the other user cannot enter the program's directory
	if err := os.Chmod(self, 0o755); err != nil {
		t.Fatal(err)
	}
	return self
}
