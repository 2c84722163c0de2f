// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs

package qualify

import (
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// on returns the report for a directory on a disk with an injected fault.
func on(t *testing.T, rule string, o Options) (Report, error) {
	t.Helper()
	m := testbed.MountFaultfs(t, t.TempDir())
	if rule != "" {
		if err := m.Rule(rule); err != nil {
			t.Fatal(err)
		}
	}
	o.Child, o.Dir = command(asChild), m.Dir
	r, err := Examine(t.Context(), o)
	if err := m.Clear(); err != nil {
		t.Error(err)
	}
	return r, err
}

func TestSlowDiskFails(t *testing.T) {
	t.Parallel()
	r, err := on(t, "fsync * delay=20ms", Options{Writers: []int{4}, For: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range r.Runs {
		if run.P50 < 0.02 || run.P99Low < 0.02 || run.Rate > float64(run.Writers)*50 {
			t.Errorf("%+v", run)
		}
	}
	if r.Result != Fail || r.Findings[0].Name != "fsync" && r.Findings[1].Name != "fsync" {
		t.Errorf("%+v", r)
	}
	empty(t, r.Dir)
}

func TestDiskWithHangingSyncFails(t *testing.T) {
	t.Parallel()
	r, err := on(t, "fsync * hang", Options{For: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if r.Result != Fail || r.Runs[0].Hung != 1 || r.Runs[0].Max < longestWait.Seconds() {
		t.Errorf("%+v", r)
	}
}

func TestBrokenDiskIsOneErrorWithARemedy(t *testing.T) {
	t.Parallel()
	_, err := on(t, "fsync * err=EIO", Options{For: time.Minute})
	e, ok := errors.AsType[*Error](err)
	if !ok || !strings.HasSuffix(e.Message, ": input/output error") ||
		!strings.HasPrefix(e.Remedy, "check the kernel log and the drive's SMART data") {
		t.Errorf("%#v", err)
	}
}

func TestFullDiskIsOneErrorWithARemedy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	_, err := Examine(t.Context(), Options{Child: command(asChild), Dir: dir, For: time.Minute})
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Message != "cannot write in "+dir+": wal rotate: no space left on device" ||
		e.Remedy != "free space or raise the limit" {
		t.Errorf("%#v", err)
	}
	empty(t, dir)
}

func TestFioOnAHangingDiskIsAbandonedAndExitsWhenTheDiskAnswers(t *testing.T) {
	t.Parallel()
	m := testbed.MountFaultfs(t, t.TempDir())
	if err := m.Rule("fsync * hang"); err != nil {
		t.Fatal(err)
	}
	fio := script(t, "for a; do case $a in --filename=*) f=${a#*=};; esac; done\n"+
		"dd if=/dev/zero of=\"$f\" bs=4k count=1 conv=fsync 2>&1")
	gone := make(chan struct{})
	began := time.Now()
	_, err := inTime(func() ([]byte, error) {
		defer close(gone)
		return runFio(t.Context(), fio, m.Dir, 3*time.Second, 100*time.Millisecond)
	}, 8*time.Second)
	if err == nil || !strings.Contains(err.Error(), "did not end within 8s, because it waits for the disk") {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
	if err := m.Clear(); err != nil {
		t.Fatal(err)
	}
	<-gone
	empty(t, m.Dir)
}
