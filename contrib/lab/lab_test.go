//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/lab"
	"github.com/quorumd/quorumd/contrib/testbed"
)

func TestAHostLosesPowerNetworkAndDisk(t *testing.T) {
	began := time.Now()
	l := up(t, lab.Options{Hosts: 2})
	t.Logf("up after %v", time.Since(began))
	n1, n2 := l.Hosts[0], l.Hosts[1]
	run := func(h *lab.Host, line string) string {
		t.Helper()
		out, err := h.Shell(t.Context(), line)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(out)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := run(n2, "cat /proc/1/comm; hostname"); got != "systemd\nn2" {
		t.Errorf("got %q", got)
	}
	run(n1, "echo flushed >/var/lib/quorumd/a; sync /var/lib/quorumd/a; echo lost >/var/lib/quorumd/b; echo kept "+
		">/root/c")
	check(n1.PowerLoss(t.Context()))
	check(n1.PowerOn(t.Context()))
	check(n1.Booted(t.Context()))
	if got := run(n1, "cat /var/lib/quorumd/a /root/c; ls /var/lib/quorumd"); got != "flushed\nkept\na" {
		t.Errorf("got %q", got)
	}
	boot, err := n1.BootID(t.Context())
	check(err)
	check(n1.Reboot(t.Context()))
	if again, err := n1.BootID(t.Context()); err != nil || again == boot {
		t.Errorf("boot ID %q, before %q: %v", again, boot, err)
	}
	check(n1.State.Fill())
	if out, err := n1.Shell(t.Context(), "echo more >/var/lib/quorumd/d"); err == nil {
		t.Errorf("wrote to a full disk: %s", out)
	}
	check(n1.State.Empty())
	run(n1, "echo more >/var/lib/quorumd/d")
	t.Logf("end after %v", time.Since(began))
}

func TestADiskIsSlowHangsAndBreaks(t *testing.T) {
	faultfs, err := testbed.FaultfsBinary()
	if err != nil {
		t.Fatal(err)
	}
	h := up(t, lab.Options{Hosts: 1, Faultfs: faultfs}).Hosts[0]
	flush := func(bound time.Duration) (time.Duration, error) {
		ctx, cancel := context.WithTimeout(t.Context(), bound)
		defer cancel()
		began := time.Now()
		_, err := h.Shell(ctx, "echo x >>/var/lib/etcd/file && sync /var/lib/etcd/file")
		return time.Since(began), err
	}
	if _, err := flush(bound); err != nil {
		t.Fatal(err)
	}
	if err := h.Disk.Slow(300 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if took, err := flush(bound); err != nil || took < 300*time.Millisecond {
		t.Errorf("a flush of a slow disk took %v: %v", took, err)
	}
	if err := errors.Join(h.Disk.Repair(), h.Disk.Hang()); err != nil {
		t.Fatal(err)
	}
	if took, err := flush(time.Second); err == nil {
		t.Errorf("a flush of a disk that hangs took %v", took)
	}
	if err := errors.Join(h.Disk.Repair(), h.Disk.Break()); err != nil {
		t.Fatal(err)
	}
	if _, err := flush(bound); err == nil {
		t.Error("a broken disk took a write")
	}
}
