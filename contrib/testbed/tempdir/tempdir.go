// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package tempdir makes temporary directories for unix sockets, whose addresses have at most 107 bytes, and for tests
// that start a program as another user. Every user can enter them, whatever the umask. t.TempDir serves neither: make
// test puts it below the checkout, whose path may be long and whose parents may be closed to other users.
//
// They have little space: /tmp may be memory.
package tempdir

import (
	"errors"
	"os"
	"testing"
)

// base is not os.TempDir, for the same reasons as above.
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

// Make is New outside a test. Its caller removes the directory.
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

// Self returns a path at which every user can start the program of the test, which a strict umask has kept to its
// owner.
func Self(t testing.TB) string {
	t.Helper()
	const self = "/proc/self/exe" // works below a directory that the other user cannot enter
	if err := os.Chmod(self, 0o755); err != nil {
		t.Fatal(err)
	}
	return self
}
