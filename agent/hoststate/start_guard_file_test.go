// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestTheStartGuardOutlivesTheAgent(t *testing.T) {
	t.Parallel()
	state, runtime := t.TempDir(), t.TempDir()
	for _, held := range []bool{true, true, false, false} {
		f, err := Open(HostFiles{}, state, runtime, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.SetStartGuard(t.Context(), held); err != nil {
			t.Fatal(err)
		}
		again, err := Open(HostFiles{}, state, runtime, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, missing := os.Stat(filepath.Join(state, startGuardName))
		if found, known := again.StartGuarded(); !known || found != held || (missing == nil) != held {
			t.Fatalf("after %v the next agent finds %v, known %t, the file %v", held, found, known, missing)
		}
	}
}

func TestAnUnreadableStartGuardIsUnknown(t *testing.T) {
	t.Parallel()
	for _, held := range []bool{true, false} {
		state, runtime := t.TempDir(), t.TempDir()
		path := filepath.Join(state, startGuardName)
		if err := os.Symlink(path, path); err != nil { // the link points to itself
			t.Fatal(err)
		}
		f, err := Open(HostFiles{}, state, runtime, nil)
		if err != nil {
			t.Fatal(err)
		}
		if found, known := f.StartGuarded(); found || known {
			t.Errorf("held %t, known %t", found, known)
		}
		if err := f.SetStartGuard(t.Context(), held); err != nil {
			t.Fatal(err)
		}
		_, missing := os.Stat(path)
		if found, known := f.StartGuarded(); found != held || !known || (missing == nil) != held {
			t.Errorf("held %t, known %t, the file %v; want %t", found, known, missing, held)
		}
	}
}

// lateGuard is a start guard whose calls return an error but still take effect.
type lateGuard struct{ there bool }

func (h *lateGuard) StartGuarded() (held, known bool) { return h.there, true }

func (h *lateGuard) SetStartGuard(_ context.Context, held bool) error {
	h.there = held
	return errors.New("no answer in time")
}

func TestAStartGuardIsUnknownAfterAFailedCall(t *testing.T) {
	t.Parallel()
	f, err := Open(HostFiles{}, t.TempDir(), t.TempDir(), &lateGuard{})
	if err != nil {
		t.Fatal(err)
	}
	if _, known := f.StartGuarded(); !known {
		t.Fatal("the guard is unknown at first")
	}
	if err := f.SetStartGuard(t.Context(), true); err == nil {
		t.Fatal("a failure is not returned")
	}
	if _, known := f.StartGuarded(); known {
		t.Error("the guard counts as known after a failed call")
	}
}
