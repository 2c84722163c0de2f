// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

func TestFailureDomainsOutliveTheAgentAndAnUnreadableFileHasNone(t *testing.T) {
	t.Parallel()
	state, runtime := t.TempDir(), t.TempDir()
	open := func() map[uint64]string {
		f, err := Open(HostFiles{}, state, runtime, nil)
		if err != nil {
			t.Fatal(err)
		}
		return f.Noted("boot-1", 0, 0).Domains
	}
	f, err := Open(HostFiles{}, state, runtime, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[uint64]string{1: "a", 1<<64 - 1: "b"}
	if err := f.NoteDomains(want); err != nil {
		t.Fatal(err)
	}
	if got := open(); !maps.Equal(got, want) {
		t.Errorf("%v was noted, want %v", got, want)
	}
	for _, text := range []string{"", "{", `["a"]`, `{"1":7}`, `{"member":"a"}`, `{"1":"a","x":"b"}`} {
		if err := os.WriteFile(filepath.Join(state, domainsName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := open(); len(got) != 0 {
			t.Errorf("%q: %v", text, got)
		}
	}
}
