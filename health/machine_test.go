// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"
	"time"
)

func TestAMachineWithoutSensorsIsNeitherHealthyNorUnhealthy(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.member, b.machine = true, MachineReading{MemoryUncorrected: Figure{Absent: "no EDAC driver"}}
	b.hardware = HardwareReading{}
	b.each(10*time.Minute, ms)
	if b.result.State != OK || len(b.result.Findings) > 0 {
		t.Errorf("got %+v", b.result)
	}
	if n := len(b.result.NotAvailable); n != 19 {
		t.Errorf("%d checks are not available: %+v", n, b.result.NotAvailable)
	}
	reports := 0
	for _, c := range b.changes {
		if c.NotAvailable == "no EDAC driver" {
			reports++
		}
	}
	if reports != 1 {
		t.Errorf("the missing driver is reported %d times, want once", reports)
	}
}

func TestLowMemoryIsFoundAndGatesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.member = true
	b.each(10*time.Minute, ms)
	b.machine.MemoryAvailable, b.machine.MemoryStalled = known(4), known(12)
	b.each(2*time.Minute, ms)
	v := b.result
	if v.State != OK || v.Code != "" {
		t.Errorf("got %s %s", v.State, v.Code)
	}
	if len(v.Findings) != 1 || v.Findings[0].Code != MemoryLow ||
		v.Findings[0].Text != "4 % of the memory is available, limit 10 %" {
		t.Errorf("the findings are %+v; waiting for memory is a consequence of having little", v.Findings)
	}
}

func TestBrokenMemoryKeepsAHostOutUntilItIsReset(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.member = true
	b.each(10*time.Minute, ms)
	b.machine.MemoryUncorrected = known(2)
	b.each(time.Second, ms)
	if b.result.State != Failed || b.result.Code != MemoryUncorrected {
		t.Fatalf("got %s %s", b.result.State, b.result.Code)
	}
	b.reborn()
	b.machine.MemoryUncorrected = Figure{Absent: "the driver was unloaded"}
	b.each(time.Second, ms)
	if b.result.State != Failed {
		t.Errorf("without its driver the memory is %s", b.result.State)
	}
	b.machine.MemoryUncorrected = known(2)
	if err := b.j.Reset(); err != nil {
		t.Fatal(err)
	}
	b.each(time.Second, ms)
	b.reborn() // the reset is remembered
	b.each(10*time.Minute, ms)
	if b.result.State != OK {
		t.Errorf("after it was repaired: %s %s", b.result.State, b.result.Text)
	}
	b.machine.MemoryUncorrected = known(3)
	b.each(time.Second, ms)
	if b.result.State != Failed {
		t.Errorf("another error: %s", b.result.State)
	}
}

func TestKillsBeforeTheFirstReadingAreIgnored(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.member, b.machine.ProcessesKilled = true, known(40)
	b.each(time.Minute, ms)
	b.reborn()
	b.machine.ProcessesKilled = known(41) // while the agent was down
	b.each(10*time.Minute, ms)
	if len(b.result.Findings) != 1 || b.result.Findings[0].Text !=
		"1 OOM kill in the last hour, limit 0" {
		t.Errorf("the findings are %+v", b.result.Findings)
	}
}

func TestARestartedCounterHasGrownByItsValue(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.member = true
	b.each(10*time.Minute, ms)
	b.machine.MemoryCorrected = known(12) // it was 100
	b.each(time.Second, ms)
	if got := b.found(MemoryCorrected); got != "12 corrected memory errors in the last day, limit 10" {
		t.Errorf("found %q", got)
	}
}

// reborn simulates a restart of the agent.
func (b *bench) reborn() {
	b.t.Helper()
	data, err := b.j.Snapshot("boot")
	if err != nil {
		b.t.Fatal(err)
	}
	b.now += 3 * time.Second
	if b.j, err = Restore(data, b.limits, "boot", b.now); err != nil {
		b.t.Fatal(err)
	}
}
