// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheAgentCanReadOutcomesRegardlessOfTheUmask(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "quorumd-hooks", "quorumd")
	if err := os.MkdirAll(dir, 0o700); err != nil { // as with a umask of 077
		t.Fatal(err)
	}
	if err := makeOutcomes(dir); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Dir(dir)} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}
