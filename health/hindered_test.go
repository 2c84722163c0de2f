// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"
	"testing"
	"time"
)

func heatedFor(minutes int) func(*bench) {
	return func(b *bench) { b.hardware = driven(func(d *Drive) { d.HotMinutes = &minutes }) }
}

func uncorrected(b *bench) { b.devices.Chain[1].PCI.Uncorrected.Value++ }

func corrected(n float64) func(*bench) {
	return func(b *bench) { b.devices.Chain[1].PCI.Corrected.Value += n }
}

func narrow(b *bench) { b.devices.Chain[1].PCI.Lanes = 2 }

func hinderedEdges() []edge {
	nothing := func(*bench) {}
	set := func(how func(*bench), lasting time.Duration) func(*bench) {
		return func(b *bench) { how(b); b.each(lasting, quiet) }
	}
	then := func(first, second func(*bench)) func(*bench) {
		return func(b *bench) { first(b); second(b) }
	}
	later := func(b *bench) { b.now += day - time.Second; b.look() }
	well := func(b *bench) { b.devices = wellDevices() }
	const second, minute = time.Second, time.Minute
	return []edge{
		{"a drive under etcd's data was too hot", set(nothing, minute), set(heatedFor(31), second)},
		{"no drive under etcd's data was too hot", then(set(heatedFor(31), second), later), set(nothing, second)},
		{"a link has fewer lanes", set(narrow, minute-second), set(nothing, second)},
		{"every link has all its lanes", then(set(narrow, second), set(well, minute-second)), set(nothing, second)},
		{"a PCI Express device has too many", set(corrected(pciCorrected), minute), set(corrected(1), second)},
		{"no PCI Express device has too many", then(set(uncorrected, second), later), set(nothing, second)},
	}
}

func TestWhatHindersADriveIsNamedAndGatesNothing(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		spoil func(*bench)
		code  Code
		want  string
	}{
		"heat between two readings": {
			heatedFor(42), DriveThrottled, "nvme0 (S1): 12 more minutes above its temperature limits in a day, limit 0",
		},
		"a lost lane": {narrow, PCILanesMissing, "sda (0000:02:00.0) uses 2 PCIe lanes of 4"},
		"an uncorrected error": {
			uncorrected, PCIErrors, "sda (0000:02:00.0): 1 more uncorrected PCIe errors in a day, limit 0",
		},
		"many corrected errors": {
			corrected(101), PCIErrors, "sda (0000:02:00.0): 101 more corrected PCIe errors in a day, limit 100",
		},
		"a few corrected errors": {corrected(100), PCIErrors, ""},
		"heat of a drive elsewhere": {
			func(b *bench) { heatedFor(42)(b); b.hardware.Drives.All[0].Name = "nvme9" }, DriveThrottled, "",
		},
		"an unknown width": {func(b *bench) { b.devices.Chain[1].PCI.Lanes = 0 }, PCILanesMissing, ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := withChecks(t)
			c.spoil(b)
			b.each(2*time.Minute, ms)
			if got := b.found(c.code); got != c.want || b.result.State != OK {
				t.Errorf("the health is %s, found %q, want %q", b.result.State, got, c.want)
			}
		})
	}
}

func TestDrivesOfAControllerCountItsErrorsOnce(t *testing.T) {
	t.Parallel()
	b := withChecks(t)
	b.devices.Chain[2].PCI = b.devices.Chain[1].PCI
	b.each(time.Second, ms)
	b.devices.Chain[1].PCI.Uncorrected.Value++
	b.devices.Chain[2].PCI.Uncorrected.Value++
	b.each(time.Second, ms)
	b.findsOnly(PCIErrors, "sda (0000:02:00.0): 1 more uncorrected PCIe errors in a day, limit 0")
}

func TestASlowDriveThatIsHinderedIsExplainedByIt(t *testing.T) {
	t.Parallel()
	b := withChecks(t)
	heatedFor(42)(b)
	narrow(b)
	b.each(10*time.Minute, 30*ms)
	why := ""
	for _, f := range b.result.Findings {
		if f.Code == DiskFsyncWarm {
			why = string(f.Cause) + ": " + f.Why
		}
	}
	if !strings.HasPrefix(why, "device: p99 of direct writes 30 ms") ||
		!strings.Contains(why, "; nvme0 (S1): 12 more minutes above its temperature limits in a day, limit 0") ||
		!strings.Contains(why, "; sda (0000:02:00.0) uses 2 PCIe lanes of 4") {
		t.Errorf("the cause is %q", why)
	}
}

func TestAMachineThatReportsNothingAboutItsLinksIsNotAvailable(t *testing.T) {
	t.Parallel()
	b := withChecks(t)
	b.devices.Chain[1].PCI = PCIDevice{Corrected: Figure{Absent: "no"}, Uncorrected: Figure{Absent: "no"}}
	b.hardware = driven(func(d *Drive) { d.HotMinutes = nil })
	b.each(time.Minute, ms)
	b.finds()
	for check, want := range map[string]string{
		"drive-throttling": "no drive under etcd's data reports for how long it was too hot",
		"pci-lanes":        "no drive under etcd's data has a PCI Express link with a known width",
		"pci-errors":       "the kernel counts no PCI Express errors of the drives under etcd's data (AER)",
	} {
		if got := b.missing(check); got != want {
			t.Errorf("%s is not available: %q, want %q", check, got, want)
		}
	}
}
