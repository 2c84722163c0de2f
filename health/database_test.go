// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"testing"
	"time"
)

// someDatabase returns a random reading of the database's file system, for a machine whose WAL is on a separate one.
func someDatabase(chance func(percent int) bool) DatabaseReading {
	d := wellDatabase()
	if chance(30) {
		d.Free = 1 << 20
	}
	if chance(20) {
		return NotAvailable[DatabaseReading]("it hangs")
	}
	return d
}

// splitBench returns a bench of a member whose database and WAL have separate file systems, both healthy.
func splitBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t, DefaultThresholds())
	b.member, b.database = true, wellDatabase()
	b.each(10*time.Minute, ms)
	if v := b.result; v.State != OK || len(v.Findings) > 0 || len(v.NotAvailable) > 0 {
		t.Fatalf("while all is healthy: %+v", v)
	}
	return b
}

func databaseEdges() []edge {
	has := func(free uint64, lasting time.Duration) func(*bench) {
		return func(b *bench) {
			b.database = wellDatabase()
			b.database.Free = free
			b.each(lasting, quiet)
		}
	}
	limit := DefaultThresholds().MinFree
	enough := limit + limit/10
	return []edge{
		{"free space below", has(limit, time.Minute), has(limit-1, time.Second)},
		{
			"free space at least",
			func(b *bench) { has(enough-1, time.Minute)(b); has(enough, time.Minute-time.Second)(b) },
			has(enough, time.Second),
		},
	}
}

func TestAFaultUnderEtcdsDatabaseIsFoundWhileItsWALIsHealthy(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		spoil func(*bench)
		code  Code
		text  string
	}{
		"full": {
			func(b *bench) { b.database.Free = 700 << 20 }, DatabaseSpaceLow,
			"700 MiB free for etcd's database, limit 1 GiB",
		},
		"no inodes": {
			func(b *bench) { b.database.InodesFree = 20 }, InodesLow,
			"2.0 % of the inodes of etcd's database are free, limit 5 %",
		},
		"read-only": {
			func(b *bench) { b.database.Devices.FileSystem.ReadOnly = known(1) }, FileSystemReadOnly,
			"the ext4 file system of etcd's database is read-only",
		},
		"damaged": {
			func(b *bench) { b.database.Devices.FileSystem.Errors = known(3) }, FileSystemErrors,
			"the ext4 file system of etcd's database has recorded 3 errors, limit 0",
		},
		"a member device is missing": {
			func(b *bench) { b.database.Devices.Arrays = []Array{{Name: "md7", Level: "raid1", Missing: 1}} },
			RAIDDegraded, "md7 (raid1) is missing 1 member device",
		},
		"resynchronised": {
			func(b *bench) { b.database.Devices.Arrays = []Array{{Name: "md7", Level: "raid1", Doing: "resync"}} },
			RAIDResyncing, "md7 (raid1) resyncs, 0 % done",
		},
		"no answer": {
			func(b *bench) { b.database.Devices.Chain[0].Errors.Value += 2 }, DeviceErrors,
			"sdc: 2 more timeouts and read errors in a day, limit 0",
		},
		"logged": {
			func(b *bench) { b.logs("sdc", failed) }, KernelLogErrors,
			"sdc: 1 more I/O errors in the kernel log in a day, limit 0",
		},
		"no barriers": {
			func(b *bench) { b.database.Devices.FileSystem.Unsafe = "nobarrier" }, FlushesDisabled,
			"the ext4 file system of etcd's database is mounted with nobarrier, which disables flushes",
		},
		"in memory": {
			func(b *bench) {
				b.database.Devices = NotAvailable[DevicesReading]("tmpfs has no block device")
				b.database.Devices.FileSystem.Type = "tmpfs"
			},
			DurabilityDoubtful, "etcd's database is on tmpfs: it is in memory and lost on power loss",
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := splitBench(t)
			c.spoil(b)
			b.each(10*time.Minute, ms)
			if got := b.found(c.code); got != c.text || len(b.result.Findings) != 1 {
				t.Errorf("found %q, want %q, of %+v", got, c.text, b.result.Findings)
			}
		})
	}
}

func TestAFullDatabaseGatesEverythingEvenWhenItFallsSilent(t *testing.T) {
	t.Parallel()
	b := splitBench(t)
	b.database = NotAvailable[DatabaseReading]("it hangs")
	b.each(10*time.Minute, ms)
	if v := b.result; v.State != OK || len(v.Findings) > 0 ||
		!slices.Contains(v.NotAvailable, Absence{"database-space", Disk, "it hangs"}) ||
		!slices.Contains(v.NotAvailable, Absence{"inodes", Disk, "it hangs"}) ||
		!slices.Contains(v.NotAvailable, Absence{"readonly", Disk, "etcd's database: it hangs"}) ||
		!slices.Contains(v.NotAvailable, Absence{"kernel-log", Disk, "etcd's database: it hangs"}) {
		t.Errorf("hanging: %+v", v)
	}
	b.database = DatabaseReading{Apart: true, Free: 1 << 20, Total: 1 << 40}
	b.each(10*time.Second, ms)
	if v := b.result; v.State != Warm || v.Code != DatabaseSpaceLow || v.Gates != Everything {
		t.Fatalf("got %+v", v)
	}
	b.database = NotAvailable[DatabaseReading]("it hangs")
	b.each(time.Hour, ms)
	if v := b.result; v.Code != DatabaseSpaceLow || v.Gates != Everything {
		t.Errorf("full and hanging: %+v", v)
	}
	b.database = DatabaseReading{Apart: true, Free: 1 << 39, Total: 1 << 40}
	b.each(10*time.Minute, ms)
	if v := b.result; v.State != OK {
		t.Errorf("with space again: %+v", v)
	}
}

func TestADeviceUnderBothIsReportedOnce(t *testing.T) {
	t.Parallel()
	b := splitBench(t)
	b.devices.Chain[1].Kind, b.devices.Arrays[0].Missing = "memory", 1
	b.database.Devices.Chain = append(b.database.Devices.Chain, slices.Clone(b.devices.Chain)...)
	b.database.Devices.Arrays = slices.Clone(b.devices.Arrays)
	b.each(10*time.Minute, ms)
	for code, want := range map[Code]string{
		RAIDDegraded:       "md0 (raid1) is missing 1 member device",
		DurabilityDoubtful: "sda is in memory and lost on power loss",
	} {
		if got := b.found(code); got != want {
			t.Errorf("found %q, want %q", got, want)
		}
	}
}

func TestAReadOnlyWALIsReportedAsTheWAL(t *testing.T) {
	t.Parallel()
	b := splitBench(t)
	b.devices.FileSystem.ReadOnly = known(1)
	b.each(time.Minute, ms)
	if got := b.found(FileSystemReadOnly); got != "the ext4 file system of etcd's WAL is read-only" {
		t.Errorf("found %q", got)
	}
}

func TestADatabaseOnTheFileSystemOfItsWALHasNoFinding(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.each(time.Minute, ms)
	i := slices.IndexFunc(b.result.Checks, func(s Standing) bool { return s.Check == "database-space" })
	s := b.result.Checks[i]
	if s.State != OK || s.NotAvailable != "" || s.Text != "etcd's database is on the same file system as its WAL" {
		t.Errorf("got %+v", s)
	}
}
