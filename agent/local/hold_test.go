// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAHoldOutlivesTheAgent(t *testing.T) {
	t.Parallel()
	state, runtime := t.TempDir(), t.TempDir()
	for _, held := range []bool{true, true, false, false} {
		f, err := Open(HostFiles{}, state, runtime, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.SetHeld(t.Context(), held); err != nil {
			t.Fatal(err)
		}
		again, err := Open(HostFiles{}, state, runtime, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, missing := os.Stat(filepath.Join(state, holdName))
		if again.Held() != held || (missing == nil) != held {
			t.Fatalf("after %v the next agent finds %v, the file %v", held, again.Held(), missing)
		}
	}
}
