// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

func TestPermanentLearnersOutliveTheAgentAndAnUnreadableFileHasNone(t *testing.T) {
	t.Parallel()
	state, runtime := t.TempDir(), t.TempDir()
	open := func() *State {
		f, err := Open(HostFiles{}, state, runtime, nil)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	want := map[uint64]int{1: 2, 1<<64 - 1: -1}
	if err := open().NoteLearners(want); err != nil {
		t.Fatal(err)
	}
	if got := open().Noted("boot-1", 0, 0).Learners; !maps.Equal(got, want) {
		t.Errorf("%v was noted, want %v", got, want)
	}
	if err := os.WriteFile(filepath.Join(state, learnersName), []byte(`{"1":"two"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := open().Noted("boot-1", 0, 0).Learners; len(got) != 0 {
		t.Errorf("noted is %v", got)
	}
}
