// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// processorEdges walks the rules of the checks of CPUs, the clock, pressure, boots and retransmissions.
func processorEdges() []edge {
	const minute, second = time.Minute, time.Second
	set := func(f func(m *MachineReading), span time.Duration) func(*bench) {
		return func(b *bench) {
			f(&b.machine)
			b.each(span, quiet)
		}
	}
	then := func(first, second func(*bench)) func(*bench) { return func(b *bench) { first(b); second(b) } }
	anHour := func(b *bench) { b.now += time.Hour - time.Second; b.look() } // the next step adds the missing second
	type change = func(m *MachineReading)
	nothing := func(*MachineReading) {}
	waits := func(percent float64) change { return func(m *MachineReading) { m.ProcessorWaited = known(percent) } }
	disks := func(percent float64) change { return func(m *MachineReading) { m.DiskWaited = known(percent) } }
	hot := func(n float64) change { return func(m *MachineReading) { m.Throttled.Value += n } }
	hung := func(m *MachineReading) { m.TasksHung.Value++ }
	clock := func(by float64) change { return func(m *MachineReading) { m.Booted.Value += by } }
	source := func(name string) change { return func(m *MachineReading) { m.ClockSource = name } }
	checks := func(n float64) change { return func(m *MachineReading) { m.MachineChecks = known(n) } }
	boots := func(all, unexpected float64) change {
		return func(m *MachineReading) { m.Boots, m.BootsUnexpected = known(all), known(unexpected) }
	}
	resend := func(n, among float64) change {
		return func(m *MachineReading) { m.Segments.Of += n; m.Segments.Among += among }
	}
	lasting := func(when string, just, bad change, span time.Duration) edge {
		return edge{when, then(set(just, minute), set(bad, span-second)), set(nothing, second)}
	}
	return []edge{
		lasting("time a process waited for a CPU over 80 %", waits(80), waits(80.1), 5*minute),
		lasting("time a process waited for a CPU at most 50 %", waits(50.1), waits(50), 5*minute),
		lasting("time stalled on disk I/O over 80 %", disks(80), disks(80.1), 5*minute),
		lasting("time stalled on disk I/O at most 50 %", disks(50.1), disks(50), 5*minute),
		lasting("the kernel uses a slow clock source", nothing, source("hpet"), minute),
		lasting("the kernel uses a fast clock source", source("acpi_pm"), source("arch_sys_counter"), minute),
		{"boots over 2", set(boots(2, 0), minute), set(boots(3, 0), second)},
		lasting("boots at most 2", boots(3, 0), boots(2, 0), minute),
		{"unclean reboots over 0", set(nothing, minute), set(boots(1, 1), second)},
		lasting("unclean reboots at most 0", boots(1, 1), boots(1, 0), minute),
		{"a machine check", set(nothing, minute), set(checks(1), second)},
		lasting("no machine check", checks(1), checks(0), minute),
		{"thermal throttling events over 10", set(hot(10), minute), set(hot(1), second)},
		{
			"thermal throttling events at most 0",
			then(set(hot(1), second), anHour), set(nothing, second),
		},
		{"hung tasks over 0", set(nothing, minute), set(hung, second)},
		{"hung tasks at most 0", then(set(hung, second), anHour), set(nothing, second)},
		{"clock steps over 0", set(clock(0.4), minute), set(clock(0.5), second)},
		{
			"clock steps at most 0",
			then(set(clock(-0.5), second), anHour), set(nothing, second),
		},
		lasting("retransmitted segments over 1 %", resend(10, 1000), resend(1, 0), minute),
		{
			"retransmitted segments at most 0.5 %",
			then(set(resend(6, 1000), second), set(resend(0, 200), 5*minute-second)), set(nothing, second),
		},
	}
}

func TestAClockStepIsFoundWithItsSize(t *testing.T) {
	t.Parallel()
	b := linked(t)
	b.machine.Booted.Value -= 3.25
	b.each(time.Second, ms)
	b.findsOnly(ClockStepped, "the clock was stepped once in the last hour, most recently by -3.2 s, limit 0")
	b.machine.Booted = Figure{Absent: "CPU starvation: cannot compare the clocks"}
	b.each(time.Minute, ms)
	b.machine.Booted = known(1.8e9) // set back meanwhile
	b.each(time.Second, ms)
	b.findsOnly(ClockStepped, "the clock was stepped 2 times in the last hour, most recently by +3.2 s, limit 0")
	b.reborn()
	b.each(time.Second, ms)
	b.findsOnly(ClockStepped, "the clock was stepped 2 times in the last hour, limit 0")
	b.machine.Booted.Value += 0.01 // too small a change to be a step
	b.pass(time.Hour, ms)
	if len(b.result.Findings) > 0 {
		t.Errorf("after an hour: %+v", b.result.Findings)
	}
}

func TestAClockStepRightAfterTheBootIsIgnored(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.member, b.now = true, time.Minute
	b.each(time.Minute, ms)
	b.machine.Booted.Value += 1e8 // the clock has no battery
	b.each(20*time.Minute, ms)
	if len(b.result.Findings) > 0 {
		t.Errorf("the findings are %+v", b.result.Findings)
	}
}

func TestHeatHungTasksAndMachineChecksAdviseOnly(t *testing.T) {
	t.Parallel()
	b := linked(t)
	b.machine.Throttled.Value += 500
	b.machine.TasksHung.Value += 2
	b.machine.MachineChecks.Value = 1
	b.each(time.Second, ms)
	var texts []string
	for _, f := range b.result.Findings {
		texts = append(texts, f.Text)
	}
	want := "500 thermal throttling events in the last hour, limit 10; at least 1 machine check " +
		"since the boot, limit 0; 2 hung tasks in the last hour, limit 0"
	if got := strings.Join(texts, "; "); got != want || b.result.State != OK || b.result.Gates != Nothing {
		t.Errorf("%s, gates %v: %s", b.result.State, b.result.Gates.Names(), got)
	}
}

func TestTakingACPUOfflineIsNoThrottling(t *testing.T) {
	t.Parallel()
	b := linked(t)
	b.machine.Throttled = known(20)
	b.each(time.Minute, ms)
	if len(b.result.Findings) > 0 {
		t.Errorf("the findings are %+v", b.result.Findings)
	}
}

func TestAFewRetransmissionsOnAQuietHostAreIgnored(t *testing.T) {
	t.Parallel()
	b := linked(t)
	b.machine.Segments.Of += 9
	b.machine.Segments.Among += 9
	b.each(3*time.Minute, ms)
	if len(b.result.Findings) > 0 {
		t.Errorf("nine segments: %+v", b.result.Findings)
	}
	b.machine.Segments.Of += 30
	b.machine.Segments.Among += 991
	b.each(90*time.Second, ms)
	b.findsOnly(Retransmissions, "3.9 % of the segments of the last five minutes were retransmitted, limit 1 %")
}

func TestHungTasksAreCountedFromTheLogIfTheKernelHasNoCounter(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.member = true
	b.machine.TasksHung = Figure{Absent: HungUncounted}
	b.hardware.TasksHung = Figure{Absent: "the kernel's log was not read"}
	b.each(400*time.Second, ms)
	want := Absence{
		"hung-tasks", Machine, HungUncounted + "; kernel log: the kernel's log was not read",
	}
	if !slices.Contains(b.result.NotAvailable, want) {
		t.Errorf("not available: %+v", b.result.NotAvailable)
	}
	b.hardware.TasksHung = known(3) // these hung before the first reading
	b.each(time.Second, ms)
	b.finds()
	b.hardware.TasksHung = known(5)
	b.each(time.Second, ms)
	b.advises("2 hung tasks in the last hour, limit 0")
	b = withChecks(t)
	b.hardware.TasksHung = known(9) // the kernel's own count takes precedence over its log
	b.machine.TasksHung = Figure{Absent: "kernel readings are out of date"}
	b.each(time.Second, ms)
	b.machine.TasksHung = known(12)
	b.each(time.Second, ms)
	b.finds(TasksHung)
	b.advises("12 hung tasks in the last hour, limit 0")
}
