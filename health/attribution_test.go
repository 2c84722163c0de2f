// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/disk"
)

// working runs a machine for span: each second, the write of each lane takes the given time; every ten seconds the
// kernel reports what the drive has done.
func (b *bench) working(span, wal, direct time.Duration, did func(*Traffic)) {
	traffic := b.devices.Chain[1].Traffic
	traffic.Known = true
	for i := range span / time.Second {
		b.now += time.Second
		b.sample(disk.LaneDirect, direct)
		b.sample(disk.LaneWAL, wal)
		did(&traffic)
		if i%10 == 9 {
			// a copy, because the judge keeps the last reading
			b.devices.At, b.devices.Chain = b.now, slices.Clone(b.devices.Chain)
			b.devices.Chain[1].Traffic = traffic
		}
		b.look()
	}
}

// flushing returns a function that adds one second of a drive's traffic, with ten flushes of this duration.
func flushing(each time.Duration) func(*Traffic) {
	return func(t *Traffic) {
		t.Writes, t.Flushes, t.FlushTime = t.Writes+10, t.Flushes+10, t.FlushTime+10*each
		t.Written, t.Busy = t.Written+40<<10, t.Busy+200*ms
	}
}

func (b *bench) cause(code Code) (Cause, string) {
	for _, f := range b.result.Findings {
		if f.Code == code {
			return f.Cause, f.Why
		}
	}
	return "", "no finding"
}

func (b *bench) blames(code Code, cause Cause, words ...string) {
	b.t.Helper()
	got, why := b.cause(code)
	if got != cause {
		b.t.Errorf("%s is attributed to %q (%s), want %q", code, got, why, cause)
	}
	for _, w := range words {
		if !strings.Contains(why, w) {
			b.t.Errorf("%s is attributed because of %q, want %q in it", code, why, w)
		}
	}
}

func atWork(t *testing.T) *bench {
	t.Helper()
	b := newBench(t, DefaultThresholds())
	b.member = true
	b.working(10*time.Minute, ms, ms, flushing(ms/2))
	if len(b.result.Findings) > 0 {
		t.Fatalf("a healthy machine has %+v", b.result.Findings)
	}
	return b
}

func TestAFastMachineHasNoCause(t *testing.T) {
	t.Parallel()
	atWork(t)
}

func TestASlowDeviceIsBlamedByItsFlushTime(t *testing.T) {
	t.Parallel()
	b := atWork(t)
	b.working(5*time.Minute, 42*ms, 40*ms, flushing(38*ms))
	b.blames(DiskFsyncWarm, CauseDevice, "direct writes 40 ms over the last five minutes, limit 10 ms",
		"a flush or write on sda took 38 ms")
}

func TestASlowFileSystemOnAFastDeviceIsBlamed(t *testing.T) {
	t.Parallel()
	b := atWork(t)
	b.working(5*time.Minute, 42*ms, ms, flushing(ms/2))
	b.blames(DiskFsyncWarm, CauseFileSystem, "took longer than 10 ms", "direct writes is 1 ms")
}

func TestOtherWritersAreBlamedBeforeTheDeviceTheyKeepBusy(t *testing.T) {
	t.Parallel()
	b := atWork(t)
	b.working(5*time.Minute, 42*ms, 40*ms, func(t *Traffic) {
		flushing(38 * ms)(t)
		t.Written, t.Busy = t.Written+80<<20, t.Busy+760*ms
	})
	b.blames(DiskFsyncWarm, CauseOthers, "sda was busy for 96 %", "80 MiB/s")
}

func TestACheckOfAnArrayIsBlamedBeforeItsDrives(t *testing.T) {
	t.Parallel()
	b := atWork(t)
	b.devices.Arrays = []Array{{Name: "md0", Level: "raid1", Doing: "check", Done: 0.25}}
	b.working(5*time.Minute, 42*ms, 40*ms, flushing(38*ms))
	b.blames(DiskFsyncWarm, CauseRAID, "md0 is being checked, 25 % done")
}

func TestCPUStarvationIsBlamedInsteadOfTheDisk(t *testing.T) {
	t.Parallel()
	b := atWork(t)
	b.working(2*time.Minute, 42*ms, 40*ms, flushing(38*ms))
	b.blames(DiskFsyncWarm, CauseDevice)
	for range 60 {
		b.contaminated(disk.LaneDirect, 300*ms)
		b.working(time.Second, 42*ms, 40*ms, flushing(38*ms))
	}
	b.blames(DiskFsyncWarm, CauseProcessor, "33 % of the last minute's samples")
}

func TestCPUStarvationAloneMakesNoDiskSlow(t *testing.T) {
	t.Parallel()
	b := atWork(t)
	for range 300 {
		b.now += time.Second
		b.contaminated(disk.LaneDirect, 300*ms)
		b.contaminated(disk.LaneWAL, 300*ms)
		b.sample(disk.LaneDirect, ms)
		b.look()
	}
	for _, f := range b.result.Findings {
		if f.Component == Disk {
			t.Errorf("the disk is blamed: %+v", f)
		}
	}
}

// hanging is a machine on which a write hangs for a while. About every ten seconds the kernel reports what the drives
// do. The write begins to hang five seconds after such a report.
type hanging struct {
	lasting          time.Duration
	before, inFlight uint64  // requests at the drive, before and while the write hangs
	suspended        bool    // the device at the top, while the write hangs
	stolen, waited   float64 // percent
	starved          bool    // more than 20 % of the samples before the write were taken during CPU starvation
}

func (h hanging) at(t *testing.T) *bench {
	b := atWork(t)
	writes := b.devices.Chain[1].Traffic.Writes
	report := func(inFlight uint64, suspended bool) {
		b.devices.At, b.devices.Chain = b.now, slices.Clone(b.devices.Chain)
		b.devices.Chain[0].Suspended, b.devices.Chain[0].Label = suspended, "vg0-etcd"
		b.devices.Chain[1].Traffic.Writes, b.devices.Chain[1].Traffic.InFlight = writes, inFlight
		b.devices.Chain[2].Traffic.Known = true
	}
	for range 20 {
		if h.starved {
			b.contaminated(disk.LaneDirect, 300*ms)
		}
		b.working(time.Second, ms, ms, flushing(ms/2))
	}
	b.machine.ProcessorWaited = known(h.waited)
	b.now += time.Second
	report(h.before, false)
	b.each(5*time.Second, ms)
	writes += 5
	began := b.now
	for i := range h.lasting / time.Second {
		b.now += time.Second
		b.machine.Processor.Of += 2 * h.stolen * 6 // h.stolen percent of a minute, within ten seconds
		b.machine.Processor.Among += 200
		b.next.InFlight, b.next.InFlightOp = b.now-began, "wal write+sync"
		if i%10 == 5 {
			report(h.inFlight, h.suspended)
		}
		b.look()
	}
	return b
}

func TestAHangingWriteIsBlamedOnTheDriveOnlyWhileTheDriveHoldsIt(t *testing.T) {
	t.Parallel()
	long := 25 * time.Second
	hanging{lasting: long, inFlight: 2}.at(t).blames(DiskStalled, CauseDevice,
		"sda has 2 requests in flight and has completed no write for 10 s")
	hanging{lasting: long, before: 2}.at(t).blames(DiskStalled, CauseFileSystem,
		"no drive under the file system has a request in flight")
	for _, before := range []uint64{0, 2} { // what the drive did before is irrelevant
		hanging{lasting: 4 * time.Second, before: before, inFlight: 2}.at(t).blames(DiskStalled, "")
	}
	// The drive may have completed its writes before the hang.
	hanging{lasting: 9 * time.Second, inFlight: 2}.at(t).blames(DiskStalled, "")
}

func TestAWriteThatADeviceHoldsIsBlamedOnItDespiteCPUStarvation(t *testing.T) {
	t.Parallel()
	long := 25 * time.Second
	h := hanging{lasting: long, inFlight: 2, starved: true, waited: 95}
	h.at(t).blames(DiskStalled, CauseDevice, "sda has 2 requests in flight")
	// A suspended device holds writes back before they reach the drive.
	h = hanging{lasting: long, suspended: true, starved: true, waited: 95, stolen: 50}
	h.at(t).blames(DiskStalled, CauseDevice, "vg0-etcd (md0) is suspended")

	// The drives have not been read since the write began to hang, so CPU starvation is not blamed yet.
	h = hanging{lasting: 4 * time.Second, inFlight: 2, starved: true, waited: 95}
	h.at(t).blames(DiskStalled, "")
	// If no drive has the write in flight, the write may be waiting for a CPU.
	hanging{lasting: long, starved: true}.at(t).blames(DiskStalled, CauseProcessor, "the last minute's samples")
	// A virtual machine without CPU time cannot observe what its drives completed.
	h = hanging{lasting: long, inFlight: 2, stolen: 50}
	h.at(t).blames(DiskStalled, CauseProcessor, "CPU steal")
}

func TestAVerySlowDriveIsBlamedDespiteCPUStarvation(t *testing.T) {
	t.Parallel()
	for flush, want := range map[time.Duration]Cause{38 * ms: CauseProcessor, 300 * ms: CauseDevice} {
		b := atWork(t)
		b.machine.ProcessorWaited = known(95)
		for range 300 {
			b.contaminated(disk.LaneDirect, 300*ms)
			b.working(time.Second, 42*ms, 40*ms, flushing(flush))
		}
		b.working(10*time.Second, 42*ms, 40*ms, flushing(flush))
		b.blames(DiskFsyncWarm, want)
	}
}

func TestTheProbeAloneDistinguishesDeviceAndFileSystem(t *testing.T) {
	t.Parallel()
	for direct, want := range map[time.Duration]Cause{40 * ms: CauseDevice, ms: CauseFileSystem, 7 * ms: ""} {
		b := newBench(t, DefaultThresholds())
		b.member, b.devices = true, NotAvailable[DevicesReading]("the kernel does not report it")
		for range 600 {
			b.now += time.Second
			b.sample(disk.LaneDirect, direct)
			b.sample(disk.LaneWAL, 42*ms)
			b.look()
		}
		b.blames(DiskFsyncWarm, want)
	}
}

func TestEtcdIsBlamedIfOnlyItsOwnWritesAreSlow(t *testing.T) {
	t.Parallel()
	b := atWork(t)
	for range 900 {
		b.etcd.WALFsync.Counts[over32ms] += 10
		b.working(time.Second, ms, ms, flushing(ms/2))
	}
	b.blames(EtcdFsyncSlow, CauseEtcd, "0 of the probe's last 30",
		"writes on the same file system took longer than 10 ms",
		"the p99 of etcd's own fsyncs is between 32 ms and 64 ms")
}

func TestEveryCauseDeclaresItsCondition(t *testing.T) {
	t.Parallel()
	for _, a := range Attributions() {
		if a.Cause == "" || a.When == "" {
			t.Errorf("not declared in full: %+v", a)
		}
	}
}

func TestCPUStealAndOverloadAreBlamedInsteadOfTheDisk(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		stolen, waited float64 // percent
		cause          Cause
		words          string
	}{
		"high steal": {
			25, 5, CauseProcessor, "CPU steal was 25 % in the last minute",
		},
		"more work than CPUs": {0, 85, CauseProcessor, "a process waited for a CPU for 85 %"},
		"as much as usual":    {3, 60, CauseDevice, "a flush or write on sda took 38 ms"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := atWork(t)
			b.machine.ProcessorWaited = known(c.waited)
			b.working(5*time.Minute, 42*ms, 40*ms, func(tr *Traffic) {
				b.machine.Processor.Of += 2 * c.stolen
				b.machine.Processor.Among += 200 // two CPUs
				flushing(38 * ms)(tr)
			})
			b.blames(DiskFsyncWarm, c.cause, c.words)
		})
	}
}
