// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// update writes the files that tests compare with: go test ./agent/config -update.
var update = flag.Bool("update", false, "write the default file and the golden files")

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// n1 replaces os.Hostname, so that results do not depend on the machine.
func n1() (string, error) { return "n1.example.org", nil }

// golden compares got with a file, or writes the file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (rewrite it with -update, then read the diff)\ngot:\n%s\nwant:\n%s", file, got, want)
	}
}
