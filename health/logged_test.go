// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"testing"
	"time"
)

// logs adds kernel log errors of a device.
func (b *bench) logs(device string, add func(*LoggedErrors)) {
	all := slices.Clone(b.hardware.Logged.All)
	i := slices.IndexFunc(all, func(e LoggedErrors) bool { return e.Device == device })
	if i < 0 {
		i, all = len(all), append(all, LoggedErrors{Device: device})
	}
	add(&all[i])
	b.hardware.Logged.All = all
}

func failed(e *LoggedErrors) { e.Errors++ }

func loggedEdges() []edge {
	well := func(b *bench) { b.each(time.Minute, quiet) }
	logs := func(b *bench) {
		b.logs("sda", failed)
		b.each(time.Second, quiet)
	}
	return []edge{
		{"the kernel log has a new device error", well, logs},
		{
			"the kernel log has no new device error",
			func(b *bench) {
				logs(b)
				b.now += loggedSpan - time.Second
				b.look()
			},
			func(b *bench) { b.each(time.Second, quiet) },
		},
	}
}

func TestOnlyErrorsOfDevicesBelowTheDataAreFound(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.devices.Chain[2] = Device{Name: "nvme0n1", Serial: "S1", Kind: "disk", AttachedTo: []string{"nvme0", "nvme1"}}
	b.pass(10*time.Minute, ms)
	for _, other := range []string{"sdz", "sd", "sda1", "nvme0n2", "nvme2", "ata1"} {
		b.logs(other, failed)
	}
	b.pass(time.Minute, ms)
	if text := b.found(KernelLogErrors); text != "" {
		t.Errorf("for other devices: %q", text)
	}
	b.logs("nvme1", func(e *LoggedErrors) { e.Resets += 2 })
	b.logs("md0", func(e *LoggedErrors) { e.FileSystem++ })
	b.logs("sda", failed)
	b.pass(time.Minute, ms)
	want := "md0: 1 more file system errors in the kernel log in a day, limit 0; " +
		"sda: 1 more I/O errors in the kernel log in a day, limit 0; " +
		"nvme0n1: 2 more timeouts and resets in the kernel log in a day, limit 0"
	if text := b.found(KernelLogErrors); text != want || b.result.State == Warm {
		t.Errorf("got %s, and from the log %q, want %q", b.result.State, text, want)
	}
}

func TestAnUnreadLogIsNotAvailableAndNoRecovery(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.pass(10*time.Minute, ms)
	b.logs("sda", failed)
	b.pass(time.Minute, ms)
	found := b.found(KernelLogErrors)
	read := b.hardware.Logged
	b.hardware.Logged = Several[LoggedErrors]{Absent: "it is not read"}
	b.pass(time.Minute, ms)
	if !slices.Contains(b.result.NotAvailable, Absence{"kernel-log", Disk, "it is not read"}) {
		t.Errorf("not available: %+v", b.result.NotAvailable)
	}
	b.hardware.Logged = read
	b.pass(time.Minute, ms)
	if text := b.found(KernelLogErrors); text != found || text == "" {
		t.Errorf("read again: %q, before: %q", text, found)
	}
}
