// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs

package testbed_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/datadir"
	"github.com/quorumd/quorumd/contrib/testbed"
)

func TestDataMovedAsideOnADiskStaysThereWhenThePowerIsCut(t *testing.T) {
	t.Parallel()
	back := t.TempDir()
	data, wal := filepath.Join("etcd", "member"), filepath.Join("logs", "wal")
	for _, dir := range []string{data, wal} {
		if err := os.MkdirAll(filepath.Join(back, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m := testbed.MountPowered(t, back, t.TempDir())
	moved, err := datadir.MoveAside(filepath.Join(m.Dir, "etcd"), filepath.Join(m.Dir, wal), time.Now())
	if err != nil || len(moved) != 2 {
		t.Fatalf("moved %v, %v", moved, err)
	}
	lost, err := m.CutPower()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{data, wal} {
		if _, err := os.Stat(filepath.Join(m.Dir, dir)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is there again (%v): %s", dir, err, lost)
		}
	}
	for _, dir := range moved {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("moved aside: %v", err)
		}
	}
}
