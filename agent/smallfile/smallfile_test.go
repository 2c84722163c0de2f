// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package smallfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestPasswordReadableByOthersIsNotUsed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, want string
		mode       os.FileMode
	}{
		"its owner may read it":     {"secret\n", "", 0o600},
		"its group may read it":     {"secret\n", "chmod 0400", 0o640},
		"every user may read it":    {"secret\n", "chmod 0400", 0o604},
		"its group may write to it": {"secret\n", "chmod 0400", 0o620},
		"it is empty":               {"\n", "on one line", 0o400},
		"it has two lines":          {"a\nb\n", "on one line", 0o400},
		"it has a null byte":        {"a\x00b\n", "on one line", 0o400},
		"it is endless":             {strings.Repeat("x", 5000), "it has more than 4096 bytes", 0o400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "password")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, c.mode); err != nil {
				t.Fatal(err)
			}
			got, err := ReadPassword(path)
			switch {
			case c.want == "" && (err != nil || got != "secret"):
				t.Errorf("it is read as %q, %v", got, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("the error is %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestOnlyRegularFilesAreRead(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o400); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		fifo: "it is not a regular file", t.TempDir(): "it is not a regular file", fifo + "x": "no such file",
	} {
		if _, err := Read(path, 100); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
