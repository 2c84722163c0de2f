// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"
	"time"
)

func TestFailedCapacitorsUnderEtcdsDataPreventAJoinAndNothingElse(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		drive func(*Drive)
		want  string
	}{
		"an NVMe drive warns": {
			func(d *Drive) { d.Warnings, d.Failed = 0x11, true },
			"nvme0 (S1): its capacitors have failed: a power cut loses writes (critical warning 0x11, limit 0)",
		},
		"a SATA drive's test is at its threshold": {
			func(d *Drive) { d.Name, d.Warns, d.Capacitor = "sda", false, &CapacitorTest{10, 10} },
			"sda (S1): its capacitors have failed: a power cut loses writes (Power_Loss_Cap_Test 10, limit 10)",
		},
		"a SATA drive's test passes": {
			func(d *Drive) { d.Name, d.Warns, d.Capacitor = "sdb", false, &CapacitorTest{11, 10} }, "",
		},
		"an NVMe drive warns of something else": {func(d *Drive) { d.Warnings = 0x0f }, ""},
		"a drive that is not under etcd's data": {func(d *Drive) { d.Name, d.Warnings = "nvme1", 16 }, ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := withChecks(t)
			b.hardware = driven(c.drive)
			b.each(2*time.Second, ms)
			if got := b.found(CapacitorFailed); got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
			state, gates := OK, Nothing
			if c.want != "" {
				state, gates = Warm, Joins
			}
			if b.result.State != state || b.result.Gates != gates {
				t.Errorf("the health is %s, and gates %v", b.result.State, b.result.Gates.Names())
			}
			if CapacitorFailed.Shared() {
				t.Error("it counts as a cause that several hosts share, so it would block the replacement of a voter")
			}
		})
	}
}

func TestFailedCapacitorsAreReportedOnce(t *testing.T) {
	t.Parallel()
	b := withChecks(t)
	b.hardware = driven(func(d *Drive) { d.Warnings, d.Failed = warningCapacitor, true })
	b.each(2*time.Second, ms)
	b.finds(CapacitorFailed)
}

func TestADriveThatFallsSilentDoesNotGetItsCapacitorsBack(t *testing.T) {
	t.Parallel()
	b := withChecks(t)
	b.hardware = driven(func(d *Drive) { d.Warnings = warningCapacitor })
	b.each(2*time.Second, ms)
	b.hardware = driven(func(d *Drive) { d.Absent = "its smartctl hangs" })
	b.each(time.Hour, ms)
	if want := "nvme0 (S1): its capacitors have failed: a power cut loses writes (critical warning 0x10, limit 0), " +
		"and the drive no longer responds"; b.found(CapacitorFailed) != want {
		t.Errorf("found %q, want %q", b.found(CapacitorFailed), want)
	}
}

func TestDrivesThatDoNotTestTheirCapacitorsAreNotAvailable(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		drive func(*Drive)
		want  string
	}{
		"no test": {
			func(d *Drive) { d.Warns = false }, "no drive under etcd's data reports whether its capacitors work",
		},
		"not under etcd's data": {
			func(d *Drive) { d.Name = "nvme1" }, "no drive under etcd's data reports whether its capacitors work",
		},
		"silent, which another check reports": {func(d *Drive) { d.Absent = "behind a RAID controller" }, ""},
	} {
		b := withChecks(t)
		b.hardware = driven(c.drive)
		b.each(time.Minute, ms)
		if got := b.missing("capacitor"); got != c.want {
			t.Errorf("%s: not available: %q, want %q", what, got, c.want)
		}
	}
	b := withChecks(t)
	b.devices = NotAvailable[DevicesReading]("no block device")
	b.each(time.Minute, ms)
	if got := b.missing("capacitor"); got != "no block device" {
		t.Errorf("not available: %q", got)
	}
}

// missing returns why a check is not available; empty if it is available.
func (b *bench) missing(check string) string {
	for _, a := range b.result.NotAvailable {
		if a.Check == check {
			return a.Why
		}
	}
	return ""
}
