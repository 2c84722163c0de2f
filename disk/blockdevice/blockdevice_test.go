// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package blockdevice

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// sysfs creates a tree like the kernel's: a disk with a partition, and a loop device of an older kernel, without flush
// counts.
func sysfs(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for path, content := range map[string]string{
		"devices/pci0/block/sda/stat":           "90 1 720 30 500 20 8000 700 3 650 900 0 0 0 0 250 400\n",
		"devices/pci0/block/sda/sda2/stat":      "9 1 72 3 50 2 800 70 0 65 90 0 0 0 0 0 0\n",
		"devices/pci0/block/sda/sda2/partition": "2\n",
		"devices/virtual/block/loop0/stat":      "1 0 8 2 5 0 40 6 0 8 8 0 0 0 0\n",
	} {
		full := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for path, target := range map[string]string{
		"dev/block/8:0": "../../devices/pci0/block/sda",
		"dev/block/8:2": "../../devices/pci0/block/sda/sda2",
		"dev/block/7:0": "../../devices/virtual/block/loop0",
		"dev/block/8:9": "../../devices/pci0/block/unplugged",
		"block/sda":     "../devices/pci0/block/sda",
		"block/loop0":   "../devices/virtual/block/loop0",
	} {
		full := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, full); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestProgressCoversTheWholeDisk(t *testing.T) {
	t.Parallel()
	devices, err := New("", sysfs(t))
	if err != nil {
		t.Fatal(err)
	}
	sda := Progress{
		Name: "sda", Writes: 500, WriteTime: 700 * time.Millisecond,
		Flushes: 250, FlushTime: 400 * time.Millisecond, InFlight: 3,
	}
	for number, want := range map[uint64]Progress{
		unix.Mkdev(8, 0): sda,
		unix.Mkdev(8, 2): sda,
		unix.Mkdev(7, 0): {Name: "loop0", Writes: 5, WriteTime: 6 * time.Millisecond},
	} {
		if got, err := devices.Progress(number); err != nil || got != want {
			t.Errorf("%#x: %+v, %v; want %+v", number, got, err, want)
		}
	}
}

func TestWithoutABlockDeviceProgressIsUnknown(t *testing.T) {
	t.Parallel()
	fake, err := New("", sysfs(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, number := range []uint64{0, unix.Mkdev(0, 42), unix.Mkdev(8, 9)} {
		if got, err := fake.Progress(number); !errors.Is(err, ErrNone) || got != (Progress{}) {
			t.Errorf("%#x: %+v, %v", number, got, err)
		}
	}
	real, err := New("", "")
	if err != nil {
		t.Fatal(err)
	}
	var proc unix.Stat_t
	if err := unix.Stat("/proc", &proc); err != nil {
		t.Fatal(err)
	}
	if _, err := real.Progress(proc.Dev); !errors.Is(err, ErrNone) {
		t.Errorf("/proc is on a disk: %v", err)
	}
}

func TestUnreadableCountersAreAnError(t *testing.T) {
	t.Parallel()
	if _, err := New("", "/no/such/sysfs"); err == nil {
		t.Error("missing sysfs is no error")
	}
	root := sysfs(t)
	devices, err := New("", root)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "devices/pci0/block/sda/stat"), []byte("nonsense"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := devices.Progress(unix.Mkdev(8, 0)); err == nil || errors.Is(err, ErrNone) {
		t.Errorf("error is %v", err)
	}
}
