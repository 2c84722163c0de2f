// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// someDevices returns random readings of the devices. Their counters are increments.
func someDevices(chance func(percent int) bool) DevicesReading {
	d := wellDevices()
	d.Chain[1].Errors.Value = 0
	if chance(10) {
		d.Arrays[0].Missing, d.Arrays[0].Failed, d.Arrays[0].Doing = 1, []string{"sda"}, "recover"
	}
	if chance(50) {
		d.Arrays[0].Doing = "resync"
	}
	if chance(10) {
		d.FileSystem.ReadOnly.Value = 1
	}
	if chance(10) {
		d.FileSystem.Errors.Value = 3
	}
	if chance(80) { // likely, because the finding needs five such minutes
		d.FileSystem.Type = "tmpfs"
	}
	if chance(10) {
		d.FileSystem.Unsafe = "nobarrier"
	}
	if chance(10) {
		d.Chain[1].Errors.Value = 2
	}
	if chance(50) { // often, because the finding takes a minute
		d.Chain[1].PCI.Lanes = 1
	}
	d.Chain[1].PCI.Uncorrected.Value = 0
	if chance(10) {
		d.Chain[1].PCI.Uncorrected.Value = 2
	}
	if chance(10) {
		return NotAvailable[DevicesReading]("the kernel does not report it")
	}
	return d
}

// grown adds the previous counts to the increments.
func (d DevicesReading) grown(before DevicesReading) DevicesReading {
	if len(d.Chain) > 1 && len(before.Chain) > 1 {
		d.Chain[1].Errors.Value += before.Chain[1].Errors.Value
		d.Chain[1].PCI.Uncorrected.Value += before.Chain[1].PCI.Uncorrected.Value
	}
	return d
}

// deviceEdges walks the rules of the checks of the devices and file systems of etcd's data.
func deviceEdges() []edge {
	set := func(how func(*bench), lasting time.Duration) func(*bench) {
		return func(b *bench) {
			how(b)
			b.each(lasting, quiet)
		}
	}
	then := func(first, second func(*bench)) func(*bench) {
		return func(b *bench) { first(b); second(b) }
	}
	nothing := func(*bench) {}
	well := func(b *bench) { b.devices = wellDevices() }
	readOnly := func(b *bench) { b.devices.FileSystem.ReadOnly = known(1) }
	noted := func(b *bench) { b.devices.FileSystem.Errors = known(1) }
	lacking := func(b *bench) { b.devices.Arrays = []Array{{Name: "md0", Level: "raid1", Missing: 1}} }
	resync := func(b *bench) { b.devices.Arrays = []Array{{Name: "md0", Level: "raid1", Doing: "resync"}} }
	unsafe := func(b *bench) { b.devices.FileSystem.Unsafe = "nobarrier" }
	memory := func(b *bench) { b.devices.FileSystem.Type = "tmpfs" }
	failing := func(b *bench) { b.devices.Chain[1].Errors.Value++ }
	left := func(n uint64) func(*bench) { return func(b *bench) { b.next.InodesFree = n } }
	const second, minute = time.Second, time.Minute
	gone := then(set(well, minute-second), nothing)
	return []edge{
		{"the file system is read-only", set(nothing, minute), set(readOnly, second)},
		{"the file system is writable", then(set(readOnly, second), gone), set(nothing, second)},
		{"the file system has recorded errors", set(nothing, minute), set(noted, second)},
		{"the file system has recorded no error", then(set(noted, second), gone), set(nothing, second)},
		{"an array is degraded", set(nothing, minute), set(lacking, second)},
		{"no array is degraded", then(set(lacking, second), gone), set(nothing, second)},
		{"an array is resyncing", set(resync, minute-second), set(nothing, second)},
		{"no array is resyncing", then(set(resync, second), gone), set(nothing, second)},
		{"free inodes below 5 %", then(set(left(50), minute), set(left(49), minute-second)), set(nothing, second)},
		{"free inodes at least 7 %", then(set(left(69), minute), set(left(70), minute-second)), set(nothing, second)},
		{"flushes are disabled for etcd's data", set(nothing, minute), set(unsafe, second)},
		{"no setting disables flushes", then(set(unsafe, second), gone), set(nothing, second)},
		{"writes may be acknowledged early", set(memory, 5*minute-second), set(nothing, second)},
		{
			"no sign of early acknowledgement",
			then(set(memory, second), then(set(well, 5*minute-second), nothing)), set(nothing, second),
		},
		{"a device reports new errors", set(nothing, minute), set(failing, second)},
		{
			"no device reports new errors",
			then(set(failing, second), func(b *bench) { b.now += 24*time.Hour - second; b.look() }),
			set(nothing, second),
		},
	}
}

// found returns the text of a finding, and nothing if there is none.
func (b *bench) found(code Code) string {
	for _, f := range b.result.Findings {
		if f.Code == code {
			return f.Text
		}
	}
	return ""
}

func TestADegradedArrayIsNamedAndGatesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.member = true
	b.each(10*time.Minute, ms)
	b.devices.Arrays = []Array{{
		Name: "md127", Level: "raid1", Missing: 1, Failed: []string{"sda2"}, Doing: "recover", Done: 0.453,
	}}
	b.each(time.Second, ms)
	want := "md127 (raid1) is missing 1 member device, failed: sda2; rebuild 45 % done"
	if got := b.found(RAIDDegraded); got != want || b.result.State != OK {
		t.Errorf("got %s, array %q, want %q", b.result.State, got, want)
	}
	b.devices = wellDevices()
	b.each(2*time.Minute, ms)
	if len(b.result.Findings) > 0 {
		t.Errorf("after it was repaired: %+v", b.result.Findings)
	}
}

func TestACheckOfAnArrayIsNoFinding(t *testing.T) {
	t.Parallel()
	for _, doing := range []string{"check", "repair", "idle", "frozen", ""} {
		b := newBench(t, DefaultThresholds())
		b.member = true
		b.each(10*time.Minute, ms)
		b.devices.Arrays = []Array{{Name: "md127", Level: "raid1", Doing: doing, Done: 0.1}}
		b.each(10*time.Minute, ms)
		if len(b.result.Findings) > 0 {
			t.Errorf("while it is in %q: %+v", doing, b.result.Findings)
		}
	}
}

func TestAnUnknownArrayIsNeitherHealthyNorUnhealthy(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.member = true
	b.devices.Arrays = []Array{{Name: "md0", Level: "raid1", Absent: "the kernel does not report it"}}
	b.each(10*time.Minute, ms)
	want := []Absence{{"raid", Disk, "md0: the kernel does not report it"}}
	if !slices.Equal(b.result.NotAvailable, want) || b.result.State != OK || len(b.result.Findings) > 0 {
		t.Errorf("not available: %+v, got %+v", b.result.NotAvailable, b.result)
	}
	b.devices.Arrays = append(b.devices.Arrays, Array{Name: "md1", Level: "raid1", Missing: 1, Doing: "idle"})
	b.each(time.Second, ms)
	if got := b.found(RAIDDegraded); got != "md1 (raid1) is missing 1 member device" ||
		!slices.Equal(b.result.NotAvailable, want) {
		t.Errorf("with a degraded one: %q, not available %+v", got, b.result.NotAvailable)
	}
}

func TestADamagedFileSystemReportsHowOftenAndWhenLast(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.member = true
	b.each(10*time.Minute, ms)
	b.devices.FileSystem.Errors = known(3)
	b.devices.FileSystem.LastError = time.Date(2026, 11, 20, 9, 12, 0, 0, time.UTC)
	b.each(time.Second, ms)
	want := "the ext4 file system of etcd's data has recorded 3 errors, limit 0, the last on 2026-11-20 09:12:00Z"
	if got := b.found(FileSystemErrors); got != want {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestNewDeviceStartsWithItsOwnErrorCount(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.member = true
	b.each(10*time.Minute, ms)
	chain := b.devices.Chain
	b.devices.Chain = []Device{chain[0], chain[1]} // sdb is removed
	b.each(time.Second, ms)
	b.devices.Chain = []Device{chain[0], chain[1], {Name: "sdc", Kind: "disk", Errors: known(40)}} // sdc is added
	b.each(time.Second, ms)
	if got := b.found(DeviceErrors); got != "" {
		t.Errorf("old errors of a new drive count: %q", got)
	}
	b.devices.Chain[2].Errors = known(43)
	b.each(time.Second, ms)
	if got := b.found(DeviceErrors); got != "sdc: 3 more timeouts and read errors in a day, limit 0" {
		t.Errorf("found %q", got)
	}
}

func TestDataInMemoryIsNotDurable(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.member = true
	b.devices = NotAvailable[DevicesReading]("it has no block device")
	b.devices.FileSystem.Type = "tmpfs"
	b.each(10*time.Minute, ms)
	if got := b.found(DurabilityDoubtful); got != "etcd's data is on tmpfs: it is in memory and lost on power loss" {
		t.Errorf("found %q", got)
	}
}

func TestSilentDevicesAreNeitherHealthyNorUnhealthy(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.member = true
	b.devices = NotAvailable[DevicesReading]("tmpfs has no block device")
	b.next.Inodes = 0
	b.each(10*time.Minute, ms)
	var names []string
	for _, a := range b.result.NotAvailable {
		names = append(names, a.Check)
	}
	const want = "capacitor firmware-soon drive-throttling pci-lanes pci-errors wear-out readonly damage inodes raid " +
		"device-errors kernel-log flushes durability"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("not available: %s", got)
	}
	if b.result.State != OK || len(b.result.Findings) > 0 {
		t.Errorf("got %+v", b.result)
	}
}
