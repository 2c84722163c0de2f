// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/disk"
)

// habit is something that a healthy machine does from time to time.
type habit struct {
	every, from, lasts time.Duration // from is the offset in each period
	slower             float64       // writes take this many times as long
	tail               float64       // chance of a write to take 8 to 40 ms instead
	starved            float64       // chance of a sample to be contaminated
	memory, stalled    float64       // percentage points of memory less available, and of time stalled on it
	clock              float64       // seconds added to the clock's error
	waited, disks      float64       // percent of the time a process waited for a CPU, and all for the disks
	resent, lost       float64       // share of retransmitted segments, and of packets without a buffer
	hot                int           // throttlings of a CPU per minute
	flaps              bool          // a link goes down and up when the habit begins
	scrubs             bool          // an array is checked
}

// machine is a typical healthy machine.
type machine struct {
	name   string
	median time.Duration // of a write of the direct lane; the WAL lane takes twice that
	spread float64       // the σ of the write times' logarithm
	tail   float64
	habits []habit
}

const week = 7 * 24 * time.Hour

// healthyMachines returns machines whose load varies, but that no operator would call unhealthy.
func healthyMachines() []machine {
	nightly := habit{
		every: 24 * time.Hour, from: 2 * time.Hour, lasts: 50 * time.Minute, slower: 4, tail: 0.004, starved: 0.02,
		memory: 25, stalled: 1.5, waited: 35, disks: 45, resent: 0.004, lost: 0.0003,
	}
	scrub := habit{
		every: week, from: 6*24*time.Hour + time.Hour, lasts: 7 * time.Hour, slower: 3, tail: 0.006, scrubs: true,
	}
	batch := habit{
		every: time.Hour, from: 10 * time.Minute, lasts: 4 * time.Minute, slower: 2, tail: 0.002, starved: 0.04,
		memory: 30, stalled: 2, waited: 70, disks: 10, resent: 0.002, hot: 1,
	}
	hiccup := habit{ // a flash translation layer that cleans up
		every: 13 * time.Minute, from: time.Minute, lasts: 3 * time.Second, slower: 30, tail: 0.5,
	}
	switches := habit{every: week, from: 3*24*time.Hour + 5*time.Hour, lasts: time.Minute, flaps: true}
	hours := habit{every: 6 * time.Hour, from: time.Hour, lasts: 4 * time.Minute, clock: 1.2} // without a time server
	shared := nightly
	shared.slower = 2
	all := []habit{nightly, batch, switches}
	return []machine{
		{"NVMe with power-loss protection", 60 * time.Microsecond, 0.3, 0.0001, all},
		{"SATA SSD in a mirror", 500 * time.Microsecond, 0.4, 0.0005, append(all, scrub, hiccup, hours)},
		{"disk of a virtual machine", 1200 * time.Microsecond, 0.35, 0.002, []habit{shared, batch, hours}},
	}
}

// now returns what a machine does at a time of the week.
func (m machine) now(at time.Duration) habit {
	sum := habit{slower: 1, tail: m.tail}
	for _, h := range m.habits {
		if into := at%h.every - h.from; into < 0 || into >= h.lasts {
			continue
		}
		sum.slower = max(sum.slower, h.slower)
		sum.tail = max(sum.tail, h.tail)
		sum.starved += h.starved
		sum.memory += h.memory
		sum.stalled += h.stalled
		sum.clock += h.clock
		sum.waited += h.waited
		sum.disks += h.disks
		sum.resent += h.resent
		sum.lost += h.lost
		sum.hot += h.hot
		sum.scrubs = sum.scrubs || h.scrubs
		sum.flaps = sum.flaps || h.flaps && at%h.every < h.from+10*time.Second
	}
	return sum
}

// write draws how long a write takes.
func (m machine) write(r *rand.Rand, h habit, lane disk.Lane) time.Duration {
	if r.Float64() < h.tail {
		return time.Duration(8+32*r.Float64()) * ms
	}
	took := float64(m.median) * h.slower * math.Exp(m.spread*r.NormFloat64())
	if lane == disk.LaneWAL {
		took *= 2
	}
	return time.Duration(took).Round(10 * time.Microsecond)
}

// lives returns a function that lets a second of a machine's week pass.
func (m machine) lives(seed uint64) func(*bench, time.Duration) {
	r := rand.New(rand.NewPCG(seed, 7))
	return func(b *bench, at time.Duration) { b.live(r, m, at) }
}

// live lets a second of a machine's week pass.
func (b *bench) live(r *rand.Rand, m machine, at time.Duration) {
	h := m.now(at)
	b.now += time.Second
	lanes := []disk.Lane{disk.LaneDirect}
	if at%(10*time.Second) == 0 {
		lanes = append(lanes, disk.LaneWAL)
	}
	for _, lane := range lanes {
		b.pending = append(b.pending, disk.Sample{
			Lane: lane, End: b.now, Latency: m.write(r, h, lane), Contaminated: r.Float64() < h.starved,
		})
	}
	if at%(10*time.Second) == 0 { // as often as the sensors are read
		b.machine.MemoryAvailable = known(math.Round(70 - h.memory + 3*r.NormFloat64()))
		b.machine.MemoryStalled = known(math.Round(10*max(0, h.stalled+0.3*r.NormFloat64())) / 10)
		b.machine.ClockError = known(math.Round(100*(0.05+h.clock)) / 100)
		b.machine.MemoryCorrected.Value += float64(r.IntN(5000) / 4999) // one or two a day
		r := rand.New(rand.NewPCG(uint64(at), 3))                       // its draws do not affect those for the disk
		b.processors(r, h, at)
		b.ports(r, h)
		if b.devices.Arrays[0].Doing = "idle"; h.scrubs {
			b.devices.Arrays[0].Doing = "check"
		}
	}
}

// processors lets ten seconds pass for the CPUs, the clock and TCP.
func (b *bench) processors(r *rand.Rand, h habit, at time.Duration) {
	m := &b.machine
	m.ProcessorWaited = known(min(100, math.Round(max(0, 8+h.waited+6*r.NormFloat64()))))
	m.DiskWaited = known(min(100, math.Round(max(0, 2+h.disks+4*r.NormFloat64()))))
	m.Booted.Value += 1e-5 * r.NormFloat64() // two clocks are never read at the same instant
	if at%time.Minute == 0 {
		m.Throttled.Value += float64(h.hot)
	}
	sent := 2000 + 1000*r.Float64()
	m.Segments.Among += math.Round(sent)
	m.Segments.Of += math.Round(sent * (0.0005 + h.resent))
	again := float64(r.IntN(1000) / 997)
	b.network.sends(again, 5+again)
	m.Processor.Among += 4000
	m.Processor.Of += math.Round(40 * r.Float64())
}

// ports lets ten seconds pass for the bond and its ports.
func (b *bench) ports(r *rand.Rand, h habit) {
	for i := range b.links.Links {
		l := &b.links.Links[i]
		packets := math.Round(20_000 * r.Float64())
		l.Packets.Value += packets
		l.Lost.Value += math.Round(packets * h.lost)
		l.Errors.Value += float64(r.IntN(5000) / 4999)
		if l.Carrier = known(1); h.flaps && i == 1 {
			l.Carrier, l.Changes = known(0), known(l.Changes.Value+2)
		}
	}
}

func TestADayOfHealthyMachinesRaisesNoGatingAlarmAndFewOthers(t *testing.T) {
	t.Parallel()
	for i, m := range healthyMachines() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			lifeOf(t, m.name, m.lives(uint64(i)), 24*time.Hour)
		})
	}
}

// lifeOf simulates a machine for days, and returns what the judge reported: every change, and the assessment at noon.
func lifeOf(t *testing.T, name string, live func(*bench, time.Duration), life time.Duration) string {
	t.Helper()
	b := newBench(t, DefaultThresholds())
	b.member = true
	var page strings.Builder
	fmt.Fprintf(&page, "# %s\n", name)
	warm, settled := map[time.Duration]int{}, false
	for at := time.Duration(0); at < life; at += time.Second {
		live(b, at)
		if at%(10*time.Second) != 0 {
			continue
		}
		for _, c := range b.look() {
			if c.NotAvailable != "" {
				continue
			}
			fmt.Fprintf(&page, "%-9s %s: %s -> %s %s\n          %s\n", at, c.Check, c.From, c.To, c.Code, c.Text)
			if c.To.WorseThan(c.From) && c.To == Warm {
				warm[at/(24*time.Hour)]++
			}
		}
		settled = settled || b.result.State == OK
		if s := b.result.State; settled && s != OK && s != Warm {
			t.Fatalf("after %s a healthy machine is %s: %s", at, s, b.result.Text)
		}
		if at%(24*time.Hour) == 12*time.Hour {
			fmt.Fprintf(&page, "%-9s %s %s gates %q: %s\n", at, b.result.State, b.result.Code,
				b.result.Gates.Names(), b.result.Text)
			for _, f := range b.result.Findings {
				fmt.Fprintf(&page, "          %s %s since %s: %s\n", f.State, f.Code, f.Since-time.Hour, f.Text)
			}
		}
	}
	if !settled || b.result.State != OK {
		t.Errorf("after %s: %s: %s", life, b.result.State, b.result.Text)
	}
	for day, n := range warm {
		if n > 1 {
			t.Errorf("on day %d something became WARM %d times", day+1, n)
		}
	}
	return page.String()
}

// TestAnUnhealthyDiskIsFoundThroughTheNoiseOfAHealthyMachine shows that the checks are not just insensitive: it adds a
// tail of slow writes to the same noise.
func TestAnUnhealthyDiskIsFoundThroughTheNoiseOfAHealthyMachine(t *testing.T) {
	t.Parallel()
	for _, bad := range []struct {
		tail   float64
		state  State
		within time.Duration
	}{{0.08, Warm, 15 * time.Minute}, {0.3, Warm, 3 * time.Minute}} {
		for i, m := range healthyMachines() {
			b, r := newBench(t, DefaultThresholds()), rand.New(rand.NewPCG(uint64(i), 11))
			b.member = true
			at := time.Duration(0)
			for ; at < 30*time.Minute; at += time.Second {
				b.live(r, m, at)
				b.look()
			}
			m.tail = bad.tail
			began := at
			for ; b.result.State != bad.state && at-began < time.Hour; at += time.Second {
				b.live(r, m, at)
				b.look()
			}
			if took := at - began; took > bad.within {
				t.Errorf("%s, %.0f %% of its writes slow: %s only after %s", m.name, 100*bad.tail, bad.state, took)
			}
		}
	}
}
