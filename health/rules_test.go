// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumd/quorumd/disk"
)

// edge tests one declared rule: just brings the bench to where the rule must not hold yet, and over takes the smallest
// step that makes it hold.
type edge struct {
	when string // the beginning of the rule's condition
	just func(b *bench)
	over func(b *bench)
}

// quiet is a latency that is neither good nor bad, so that no rule holds because of it.
const quiet = 6 * ms

// TestEveryRuleHoldsFromItsLimitOn walks each rule from each of its states, after 100 s of quiet.
func TestEveryRuleHoldsFromItsLimitOn(t *testing.T) {
	t.Parallel()
	all := slices.Concat(hangEdges(), dataEdges(), runEdges(), latencyEdges(), spaceEdges(), cpuEdges(),
		machineEdges(), processorEdges(), linkEdges(), etcdEdges(), deviceEdges(), driveEdges(),
		firmwareEdges(), wearEdges(), hinderedEdges(), loggedEdges(),
		timeEdges(), networkEdges(), discoveryEdges(), databaseEdges(), sharedEdges(),
		comparisonEdges(), requestsEdges(), hashesEdges())
	j, err := New(DefaultThresholds())
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range j.checks {
		for k, r := range c.rules {
			at := slices.IndexFunc(all, func(e edge) bool { return strings.HasPrefix(r.when, e.when) })
			if at < 0 {
				t.Errorf("no edge walks the rule to %s when %s", r.to, r.when)
				continue
			}
			for _, from := range r.from {
				t.Run(from.String()+" to "+r.to.String()+" when "+r.when, func(t *testing.T) {
					t.Parallel()
					walk(t, i, k, from, all[at])
				})
			}
		}
	}
}

func walk(t *testing.T, check, rule int, from State, e edge) {
	b := newBench(t, DefaultThresholds())
	b.member = true
	c := b.j.checks[check]
	fired := 0
	holds := c.rules[rule].holds
	c.rules[rule].holds = func() (string, bool) {
		measured, met := holds()
		if met {
			fired++
		}
		return measured, met
	}
	b.each(100*time.Second, quiet)
	b.put(c, from)
	fired = 0
	e.just(b)
	if fired > 0 {
		t.Fatalf("it held too early: %+v", b.changes)
	}
	if c.State != from { // another rule applied just before, which is fine
		b.put(c, from)
	}
	b.changes = nil
	e.over(b)
	want := Change{
		Component: c.Component, Check: c.Name, From: from, To: c.rules[rule].to, Code: c.rules[rule].code, At: b.now,
	}
	i := slices.IndexFunc(b.changes, func(got Change) bool { got.Text = ""; return got == want })
	if fired != 1 || i < 0 {
		t.Fatalf("it held %d times, changes %+v", fired, b.changes)
	}
	if b.changes[i].Text == "" {
		t.Error("it has no measurement")
	}
}

func hangEdges() []edge {
	hang := func(b *bench, age, vouchedAgo time.Duration) {
		b.next.InFlight, b.next.InFlightOp, b.next.LastCompletion = age, "wal write+sync", 0
		if vouchedAgo > 0 {
			b.next.LastCompletion = b.now - vouchedAgo
		}
		b.look()
	}
	fail := func(b *bench, errno syscall.Errno) {
		b.next.Err = &DiskError{"wal write+sync", errno, b.now}
		b.look()
	}
	return []edge{
		{
			"an operation returns an error that means",
			func(b *bench) { fail(b, syscall.ENOSPC) },
			func(b *bench) { fail(b, syscall.EIO) },
		},
		{
			"a write has been in flight for more than 30 s",
			func(b *bench) { hang(b, 30*time.Second, 0) },
			func(b *bench) { hang(b, 30*time.Second+1, 0) },
		},
		{
			"an operation has been in flight for more than 1 s",
			func(b *bench) { hang(b, time.Second, 0); hang(b, 3*time.Second, time.Second-1) },
			func(b *bench) { hang(b, time.Second+1, time.Second) },
		},
		{
			"the operation returned",
			func(b *bench) {
				b.sample(disk.LaneDirect, ms) // completed when the other write began to hang
				b.look()
				b.now++
				b.sample(disk.LaneDirect, 2*time.Second)
				hang(b, time.Second+1, 0) // the next write hangs as well
			},
			func(b *bench) { hang(b, time.Second, 0) },
		},
		{
			"another write to the disk became durable",
			func(b *bench) { hang(b, 2*time.Second, time.Second) },
			func(b *bench) { hang(b, 2*time.Second, time.Second-1) },
		},
		{
			"an operator resets the health state",
			func(b *bench) { b.each(time.Hour, ms) },
			func(b *bench) {
				if err := b.j.Reset(); err != nil {
					b.t.Error(err)
				}
				b.look()
			},
		},
	}
}

func dataEdges() []edge {
	silence := func(b *bench) { b.now += time.Hour; b.look(); b.spoil(time.Second) }
	return []edge{
		{
			"there has been no sample for 5 s",
			func(b *bench) { b.now += 5 * time.Second; b.look() },
			func(b *bench) { b.now++; b.look() },
		},
		{
			"there have been only contaminated samples",
			func(b *bench) { b.spoil(5 * time.Minute) },
			func(b *bench) { b.now++; b.contaminated(disk.LaneDirect, ms); b.look() },
		},
		{
			"samples arrive, and the host has a member",
			silence,
			func(b *bench) { b.sample(disk.LaneDirect, ms); b.look() },
		},
		{
			"samples arrive, and the host has no member",
			func(b *bench) { b.member = false; silence(b) },
			func(b *bench) { b.sample(disk.LaneDirect, ms); b.look() },
		},
		{
			"the host no longer has a member",
			func(b *bench) {
				b.member, fsyncOf(b.j).qualified = false, true
				b.look()
				b.member, fsyncOf(b.j).qualified = true, false
				b.look()
			},
			func(b *bench) { b.member = false; b.look() },
		},
	}
}

func runEdges() []edge {
	return []edge{
		{
			"3000 writes (WAL-like ones only, if the host has no member)",
			func(b *bench) { b.etcd.Process = EtcdProcess{Known: true}; b.burst(2999, ms) },
			func(b *bench) { b.burst(1, ms) },
		},
		{
			"p99 of 3000 WAL-like writes",
			func(b *bench) { b.member = false; b.burst(2999, ms) },
			func(b *bench) { b.burst(1, ms) },
		},
		{
			"3000 WAL-like writes were measured",
			func(b *bench) { b.member = false; b.burst(2999, 48*ms) },
			func(b *bench) { b.burst(1, 48*ms) },
		},
		{
			"the host has a member, and 11 of",
			func(b *bench) {
				b.each(5*time.Second, 10*ms+1)
				b.each(time.Second, ms)
				b.each(5*time.Second, 10*ms+1)
			},
			func(b *bench) { b.each(time.Second, ms); b.each(time.Second, 10*ms+1) },
		},
		{
			"the host has a member, and 3 WAL-like samples in a row",
			func(b *bench) {
				b.each(2*time.Second, 100*ms+1)
				b.each(time.Second, 100*ms)
				b.each(2*time.Second, 100*ms+1)
			},
			func(b *bench) { b.each(time.Second, 100*ms+1) },
		},
		{
			"the host has a member, and 6 WAL-like samples in a row", sixSoon,
			func(b *bench) { b.each(time.Second, 10*ms+1) },
		},
		{
			"the host has a member, and 2 samples are over 500 ms",
			func(b *bench) { b.each(time.Second, 500*ms+1); b.each(time.Second, 500*ms); b.each(time.Second, quiet) },
			func(b *bench) { b.each(time.Second, 500*ms+1) },
		},
		{
			"the host has a member and 300 samples, and was",
			func(b *bench) { fsyncOf(b.j).wasWarm = true; b.each(199*time.Second, ms) },
			func(b *bench) { b.each(time.Second, ms) },
		},
		{
			"the host has a member and 300 samples without a sign of WARM",
			func(b *bench) { b.each(199*time.Second, ms) },
			func(b *bench) { b.each(time.Second, ms) },
		},
	}
}

// sixSoon makes the decisive number of consecutive slow writes, but in less than the decisive time.
func sixSoon(b *bench) {
	b.each(time.Second, 10*ms+1)
	b.each(time.Second, 10*ms)
	for range 6 {
		b.now += 900 * ms
		b.sample(disk.LaneDirect, 10*ms+1)
		b.look()
	}
}

func latencyEdges() []edge {
	// Twenty samples a round, one of them slow, are too few for the p99 of a minute, yet multiply the score by 1.5.
	round := func(b *bench) {
		for i := range 20 {
			b.now += 501 * ms
			b.sample(disk.LaneDirect, map[bool]time.Duration{true: 101 * ms, false: quiet}[i == 10])
			b.look()
		}
	}
	return []edge{
		{
			"11 of the last 300 samples",
			func(b *bench) {
				b.each(time.Second, 10*ms+1)
				b.each(290*time.Second, 10*ms)
				b.each(10*time.Second, 10*ms+1)
			},
			func(b *bench) { b.each(time.Second, 10*ms+1) },
		},
		{
			"the slow score reaches 100",
			func(b *bench) {
				for range 12 { // the first call ends a round that had begun without slow writes; 1.5^11 is 86
					round(b)
				}
			},
			func(b *bench) { b.each(time.Second, quiet) },
		},
		{
			"p99 is significantly over 100 ms",
			func(b *bench) { b.each(4*time.Second, 100*ms+1); b.each(10*time.Second, 100*ms) },
			func(b *bench) { b.each(time.Second, 100*ms+1) },
		},
		{
			"3 WAL-like samples in a row, or 3 direct ones, are over 100 ms",
			func(b *bench) {
				b.each(2*time.Second, 100*ms+1)
				b.each(time.Second, 100*ms)
				b.each(2*time.Second, 100*ms+1)
			},
			func(b *bench) { b.each(time.Second, 100*ms+1) },
		},
		{"6 WAL-like samples in a row, or 6 direct ones", sixSoon, func(b *bench) { b.each(time.Second, 10*ms+1) }},
		{
			"2 samples are over 500 ms within 10 min, the last one while",
			func(b *bench) {
				b.each(time.Second, 500*ms+1)
				b.each(10*time.Minute, quiet)
				b.each(time.Second, 500*ms+1)
				b.each(time.Second, 500*ms)
			},
			func(b *bench) { b.each(time.Second, 500*ms+1) },
		},
		{
			"2 samples are over 500 ms",
			func(b *bench) {
				b.each(time.Second, 500*ms+1)
				b.each(10*time.Minute, quiet)
				b.each(time.Second, 500*ms)
				b.each(time.Second, quiet)
				b.each(time.Second, 500*ms+1)
			},
			func(b *bench) { b.each(time.Second, 500*ms+1) },
		},
		{
			"for 15 min and in at least 300 samples",
			func(b *bench) { b.each(time.Second, 100*ms); b.each(15*time.Minute-time.Second, 100*ms-1) },
			func(b *bench) { b.each(time.Second, 100*ms-1) },
		},
		{
			"for 5 min, at most 3 of the last 300 samples have been over 5 ms",
			func(b *bench) { // WARM for 5 min, but 4 of the last 300 samples are over 5 ms
				b.each(4*time.Second, 5*ms+1)
				b.each(296*time.Second, 5*ms)
				// Now few enough samples are over 5 ms, but the disk has been WARM for less than 5 min.
				b.put(b.j.checks[0], Warm)
				b.each(5*time.Minute-time.Second, 5*ms)
			},
			func(b *bench) { b.each(time.Second, 5*ms) },
		},
	}
}

func spaceEdges() []edge {
	free := func(bytes uint64, age time.Duration) func(*bench) {
		return func(b *bench) { b.next.Free, b.next.UsageAge = bytes, age; b.look() }
	}
	return []edge{
		{"free space has not been measured", free(1<<30, 5*time.Minute), free(1<<30, 5*time.Minute+1)},
		{"less than 1 GiB free", free(1<<30, 0), free(1<<30-1, 0)},
		{"1 GiB or more free", free(1<<30-1, 0), free(1<<30, 0)},
		{"1.1 GiB or more free", free(1<<30+1<<30/10-1, 0), free(1<<30+1<<30/10, 0)},
	}
}

func cpuEdges() []edge {
	return []edge{
		{
			"more than 20 % of the samples",
			func(b *bench) { // one every 1.01 s is 60 in the minute
				for i := range 120 {
					b.now += 1010 * ms
					b.pending = []disk.Sample{{End: b.now, Latency: ms, Contaminated: i >= 108}}
					b.look()
				}
			},
			func(b *bench) { b.now += 1010 * ms; b.contaminated(disk.LaneDirect, ms); b.look() },
		},
		{
			"at most 10 % of the samples",
			func(b *bench) {
				cpuOf(b.j).lastBad = b.now
				b.spoil(20 * time.Second)
				for cpuOf(b.j).percent() > 10 {
					b.each(time.Second, ms)
				}
				b.each(cpuSpan-2*time.Second, ms)
			},
			func(b *bench) { b.each(time.Second, ms) },
		},
	}
}

func machineEdges() []edge {
	set := func(f func(m *MachineReading), span time.Duration) func(*bench) {
		return func(b *bench) {
			f(&b.machine)
			b.each(span, quiet)
		}
	}
	then := func(first, second func(*bench)) func(*bench) { return func(b *bench) { first(b); second(b) } }
	nothing := func(*MachineReading) {}
	available := func(value float64) func(m *MachineReading) {
		return func(m *MachineReading) { m.MemoryAvailable = known(value) }
	}
	stalled := func(value float64) func(m *MachineReading) {
		return func(m *MachineReading) { m.MemoryStalled = known(value) }
	}
	off := func(value float64) func(m *MachineReading) {
		return func(m *MachineReading) { m.ClockError = known(value) }
	}
	killed := func(n float64) func(m *MachineReading) {
		return func(m *MachineReading) { m.ProcessesKilled.Value += n }
	}
	corrected := func(n float64) func(m *MachineReading) {
		return func(m *MachineReading) { m.MemoryCorrected.Value += n }
	}
	const minute, second = time.Minute, time.Second
	return []edge{
		{
			"memory available below 10 %",
			then(set(available(10), minute), set(available(9.9), minute-second)), set(nothing, second),
		},
		{
			"memory available at least 12 %",
			then(set(available(11.9), minute), set(available(12), minute-second)), set(nothing, second),
		},
		{"time stalled on memory over 5 %", set(stalled(5), minute), set(stalled(5.1), second)},
		{
			"time stalled on memory at most 2 %",
			then(set(stalled(2.1), minute), set(stalled(2), minute-second)), set(nothing, second),
		},
		{
			"maximum clock error over 1 s",
			then(set(off(1), minute), set(off(1.1), 10*minute-second)), set(nothing, second),
		},
		{
			"maximum clock error at most 500 ms",
			then(set(off(0.6), minute), set(off(0.5), minute-second)), set(nothing, second),
		},
		{"processes killed over 0", set(nothing, minute), set(killed(1), second)},
		{
			"processes killed at most 0",
			then(set(killed(1), second), set(nothing, time.Hour-second)), set(nothing, second),
		},
		{"corrected errors over 10", set(corrected(10), minute), set(corrected(1), second)},
		{
			"corrected errors at most 5",
			then(set(corrected(6), second), func(b *bench) { b.now += 24*time.Hour - second; b.look() }),
			set(nothing, second),
		},
		{
			"an uncorrectable memory error", set(nothing, minute),
			set(func(m *MachineReading) { m.MemoryUncorrected = known(1) }, second),
		},
	}
}

// spoil lets the span pass with only contaminated samples.
func (b *bench) spoil(span time.Duration) {
	for range span / time.Second {
		b.now += time.Second
		b.contaminated(disk.LaneDirect, 3*time.Second)
		b.look()
	}
}
