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

func TestAHoldOutlivesTheAgent(t *testing.T) {
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
		_, missing := os.Stat(filepath.Join(state, holdName))
		if found, known := again.StartGuarded(); !known || found != held || (missing == nil) != held {
			t.Fatalf("after %v the next agent finds %v, known %t, the file %v", held, found, known, missing)
		}
	}
}

func TestAHoldThatCannotBeReadIsNeitherThereNorNot(t *testing.T) {
	t.Parallel()
	for _, held := range []bool{true, false} {
		state, runtime := t.TempDir(), t.TempDir()
		path := filepath.Join(state, holdName)
		if err := os.Symlink(path, path); err != nil { // who follows it finds no end
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

// lateHold fails, and what it was told is done all the same.
type lateHold struct{ there bool }

func (h *lateHold) StartGuarded() (held, known bool) { return h.there, true }

func (h *lateHold) SetStartGuard(_ context.Context, held bool) error {
	h.there = held
	return errors.New("no answer in time")
}

func TestAHoldThatWasNotMadeForSureIsNotTakenForAbsent(t *testing.T) {
	t.Parallel()
	f, err := Open(HostFiles{}, t.TempDir(), t.TempDir(), &lateHold{})
	if err != nil {
		t.Fatal(err)
	}
	if _, known := f.StartGuarded(); !known {
		t.Fatal("it is not known at first")
	}
	if err := f.SetStartGuard(t.Context(), true); err == nil {
		t.Fatal("a failure is not told")
	}
	if _, known := f.StartGuarded(); known {
		t.Error("it is taken for known what nobody knows")
	}
}
