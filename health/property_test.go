// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/quorumd/quorumd/disk"
)

// weather is the random state of a machine for some seconds. Its counters are increments.
type weather struct {
	latency      func() time.Duration
	contaminated float64 // share of samples
	silent       bool
	inFlight     time.Duration
	vouched      bool
	errno        syscall.Errno
	member       bool
	free         uint64
	machine      MachineReading
	devices      DevicesReading
	database     DatabaseReading
	links        LinkReading
	discovery    DiscoveryReading
	shared       SharedReading
	inodesFree   uint64
	hardware     HardwareReading
	restarts     bool // the agent restarts at the end
	resets       bool // an operator resets the health state at the end
	lasts        int  // seconds
	peers        PeerWritesReading
}

func someWeather(r *rand.Rand) weather {
	chance := func(percent int) bool { return r.IntN(100) < percent }
	pick := func(from ...time.Duration) time.Duration { return from[r.IntN(len(from))] }
	base, spike, often := pick(ms, 3*ms, 6*ms, 12*ms, 150*ms), pick(ms, 11*ms, 60*ms, 130*ms, 700*ms), r.IntN(8)
	w := weather{
		latency: func() time.Duration {
			if chance(often) {
				return spike
			}
			return base
		},
		member: chance(50), free: 50 << 30, lasts: 1 + r.IntN(90),
		silent: chance(10), vouched: chance(20), restarts: chance(10), resets: chance(10),
	}
	if chance(60) {
		w.latency = func() time.Duration { return ms }
	}
	if chance(20) {
		w.contaminated = r.Float64()
	}
	if chance(10) {
		w.inFlight = pick(500*ms, time.Second, 2*time.Second, 29*time.Second, 31*time.Second)
	}
	if chance(6) {
		w.errno = []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.EROFS, syscall.EACCES}[r.IntN(4)]
	}
	if chance(5) {
		w.free = 1 << 20
	}
	w.hardware = someHardware(chance)
	w.machine, w.devices, w.inodesFree = someMachine(chance), someDevices(chance), 900
	w.links = someLinks(chance)
	w.shared = wellShared()
	if chance(5) {
		w.shared = onMachine()
	}
	w.discovery = wellDiscovery()
	if chance(85) { // likely, because the finding needs five such minutes
		w.discovery.Failed = "the name server does not answer"
	}
	if chance(10) {
		w.inodesFree = 10
	}
	if chance(20) {
		w.database = someDatabase(chance)
	}
	w.peers = peersAt(base, 0)
	if chance(30) {
		w.peers = peersAt(pick(0, time.Microsecond, ms, 12*ms, 2*writeLongest), r.IntN(2)*tailsMost)
	}
	w.peers.Known = chance(90)
	return w
}

// someMachine returns random readings of the rest of the machine. Their counters are increments.
func someMachine(chance func(percent int) bool) MachineReading {
	m := wellMachine()
	m.ProcessesKilled.Value, m.MemoryCorrected.Value = 0, 0
	m.Throttled.Value, m.Booted.Value, m.Segments.Of, m.Segments.Among = 0, 0, 1, 5000
	if chance(10) {
		m.MemoryAvailable.Value = 3
	}
	if chance(10) {
		m.MemoryStalled.Value = 30
	}
	if chance(10) {
		m.ProcessesKilled.Value = 2
	}
	if chance(10) {
		m.MemoryCorrected.Value = 20
	}
	if chance(3) {
		m.MemoryUncorrected.Value = 1
	}
	if chance(90) { // likely, because the finding needs ten such minutes
		m.ClockError.Value = 20
	}
	if chance(10) {
		m.Throttled.Value, m.TasksHung.Value, m.Booted.Value = 20, 1, 3
	}
	if chance(10) {
		m.ClockSource, m.Segments.Of = "hpet", 500
	}
	if chance(5) {
		m.MachineChecks.Value, m.Boots.Value, m.BootsUnexpected.Value = 1, 4, 1
	}
	if chance(85) { // likely, because the finding needs five such minutes
		m.ProcessorWaited.Value, m.DiskWaited.Value = 90, 95
	}
	if chance(10) {
		m.Booted, m.ClockSource, m.Segments = Figure{}, "", Part{}
	}
	if chance(10) {
		m.MemoryAvailable, m.MemoryStalled = Figure{}, Figure{Absent: "the kernel does not report it"}
	}
	return m
}

// witness watches a judge from outside and fails the test if something happens that must not.
type witness struct {
	*bench
	run    []time.Duration // uncontaminated WAL samples since QUALIFYING was entered
	proven bool            // passed QUALIFYING by the witness's own count
	limits Thresholds
}

func (w *witness) watch() {
	was, reset := w.disk(), w.j.reset
	for _, s := range w.pending {
		if was == Qualifying && s.Lane == disk.LaneWAL && !s.Contaminated {
			w.run = append(w.run, s.Latency)
		}
	}
	changes := w.look()
	for _, c := range changes {
		if c.Check == fsyncName {
			w.mayChange(c, was, reset)
			was = c.To
		}
	}
	if was != w.disk() {
		w.t.Fatalf("the changes %+v end in %s and not in %s", changes, was, w.disk())
	}
	w.mayBe()
}

func (w *witness) mayChange(c Change, was State, reset bool) {
	if c.From != was {
		w.t.Fatalf("%+v does not follow %s", c, was)
	}
	if !slices.ContainsFunc(w.j.Rules(), func(r Rule) bool {
		return r.Component == c.Component && slices.Contains(r.From, c.From) && r.To == c.To && r.Code == c.Code
	}) {
		w.t.Fatalf("no rule declares %+v", c)
	}
	if c.From == Failed && (!reset || c.To != Qualifying) {
		w.t.Fatalf("FAILED ended by itself: %+v", c)
	}
	switch {
	case c.From == Qualifying && c.To == OK:
		w.proven = w.good()
	case c.To != OK && c.To != Warm:
		w.proven = false
	}
	if c.From != c.To {
		w.run = nil
	}
}

// good reports whether the last run passes, by the witness's own count.
func (w *witness) good() bool {
	n := w.limits.QualifySamples
	if len(w.run) < n {
		return false
	}
	run := w.run[len(w.run)-n:]
	over := func(limit time.Duration) (k int) {
		for _, d := range run {
			if d >= limit {
				k++
			}
		}
		return k
	}
	return over(w.limits.FsyncWarm)*100 <= n && over(5*w.limits.FsyncWarm)*1000 <= n &&
		over(5*w.limits.FsyncSlow+1) == 0
}

func (w *witness) mayBe() {
	v := w.result
	if v.Qualified && !w.proven {
		w.t.Fatalf("qualified without a run: %s", v.Text)
	}
	if v.Qualified && w.disk() != OK && w.disk() != Warm {
		w.t.Fatalf("qualified and %s", w.disk())
	}
	worst := OK
	for _, f := range v.Findings {
		if f.Gates != Nothing && f.State.WorseThan(worst) {
			worst = f.State
		}
		if f.Text == "" || f.Remedy == "" || f.Since > w.now || f.Since < 0 {
			w.t.Fatalf("the finding %+v is not complete", f)
		}
	}
	if v.State != worst || v.Since > w.now || v.Text == "" || (v.State == OK) != (v.Code == "") {
		w.t.Fatalf("got %+v", v)
	}
	for _, c := range w.j.checks {
		if more := c.settle(w.now); len(more) > 0 {
			w.t.Fatalf("the judge had changes left: %+v", more)
		}
	}
}

// live applies the weather's readings to the machine for as long as the weather lasts.
func (w *witness) live(r *rand.Rand, sky weather) {
	w.member, w.next.Free = sky.member, sky.free
	m := sky.machine
	m.ProcessesKilled.Value += w.machine.ProcessesKilled.Value
	m.MemoryCorrected.Value += w.machine.MemoryCorrected.Value
	m.MemoryUncorrected.Value += w.machine.MemoryUncorrected.Value
	m.Throttled.Value += w.machine.Throttled.Value
	m.TasksHung.Value += w.machine.TasksHung.Value
	m.Booted.Value += w.machine.Booted.Value
	m.Segments.Of, m.Segments.Among = m.Segments.Of+w.machine.Segments.Of, m.Segments.Among+w.machine.Segments.Among
	w.machine, w.next.InodesFree = m, sky.inodesFree
	w.hardware = sky.hardware
	w.devices, w.links = sky.devices.grown(w.devices), sky.links.grown(w.links)
	w.discovery, w.database, w.shared = sky.discovery, sky.database, sky.shared
	w.peers = sky.peers
	w.etcd.weather(func(percent int) bool { return r.IntN(100) < percent })
	w.network = networkAt(w.now, w.network)
	if sky.errno != 0 {
		w.next.Err = &DiskError{"wal write+sync", sky.errno, w.now}
	}
	hung := time.Duration(0)
	for range sky.lasts {
		w.now += time.Second
		w.next.InFlight, w.next.LastCompletion = 0, 0
		if hung += time.Second; sky.inFlight > 0 && hung <= sky.inFlight {
			w.next.InFlight = hung + 1
		}
		if sky.vouched {
			w.next.LastCompletion = w.now - time.Second/2
		}
		for i := range 11 {
			lane := disk.Lane(min(i, 1))
			if sky.silent || w.next.InFlight > 0 || lane == disk.LaneWAL && w.member {
				continue
			}
			w.pending = append(w.pending, disk.Sample{
				Lane: lane, End: w.now, Latency: sky.latency(), Contaminated: r.Float64() < sky.contaminated,
			})
		}
		w.watch()
	}
	if sky.resets && w.disk() == Failed {
		if err := w.j.Reset(); err != nil {
			w.t.Fatal(err)
		}
		w.now++
		w.watch()
	}
	if sky.restarts {
		w.restart()
	}
}

func (w *witness) restart() {
	w.t.Helper()
	was, qualified := w.disk(), fsyncOf(w.j).qualified
	data, err := w.j.Snapshot("boot")
	if err != nil {
		w.t.Fatal(err)
	}
	w.now += 3 * time.Second
	history := w.j.compared.history
	if w.j, err = Restore(data, w.limits, "boot", w.now); err != nil {
		w.t.Fatal(err)
	}
	w.j.UseHistory(history)
	if w.disk() != was || fsyncOf(w.j).qualified != qualified {
		w.t.Fatalf("%s, qualified %v, came back as %s, %v", was, qualified, w.disk(), fsyncOf(w.j).qualified)
	}
	w.run, w.next.Err = nil, nil
}

// TestNoWeatherBreaksAPromise sends machines through random weather. No disk becomes Qualified without a run. No disk
// leaves FAILED without an operator, because the weather does not show whether etcd was restarted. Every change of the
// disk's state is declared, and no change of any check is left for the next look. The health state is that of the worst
// finding that gates something. The weather is rough enough to reach nearly every code.
func TestNoWeatherBreaksAPromise(t *testing.T) {
	t.Parallel()
	limits := DefaultThresholds()
	limits.QualifySamples, limits.Window = 150, 30
	seen, qualified := map[Code]bool{}, 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		w := &witness{bench: newBench(t, limits), limits: limits}
		w.j.UseHistory(historyOf(ms, 0))
		w.watch()
		for range 25 {
			w.live(r, someWeather(r))
			for _, c := range w.changes {
				seen[c.Code] = true
			}
			w.changes = nil
			if w.proven && w.result.Qualified {
				qualified++
			}
		}
	}
	for _, p := range Problems() {
		// weather does not last long enough for these
		hours := slices.Contains([]Code{
			EtcdQuotaFilling, EtcdSizeDiffers, EtcdHeartbeatShort, DriveWearsOut,
		}, p.Code)
		if !seen[p.Code] && p.Code != DiskSpaceUnknown && !hours {
			t.Errorf("no machine reached %s", p.Code)
		}
	}
	if qualified < 50 {
		t.Errorf("only %d were qualified", qualified)
	}
}

// TestContaminatedSamplesNeverBlameTheDisk contaminates every slow sample, whatever the share of slow samples.
func TestContaminatedSamplesNeverBlameTheDisk(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 11))
		limits := DefaultThresholds()
		limits.QualifySamples, limits.Window = 150, 30
		b := newBench(t, limits)
		for range 20 {
			b.member = r.IntN(2) == 0
			share := r.Float64()
			for range 20 + r.IntN(40) {
				b.now += time.Second
				for range 1 + r.IntN(5) {
					lane := disk.Lane(r.IntN(2))
					if r.Float64() < share {
						b.contaminated(lane, time.Duration(r.Int64N(int64(10*time.Second))))
					} else {
						b.sample(lane, time.Duration(r.Int64N(int64(5*ms))))
					}
				}
				b.look()
				if s := b.disk(); s != Unknown && s != Qualifying && s != OK {
					t.Fatalf("seed %d: the disk is %s: %s", seed, s, fsyncOf(b.j).text())
				}
				if fsyncOf(b.j).track.Code == DiskUnfit {
					t.Fatalf("seed %d: the disk did not pass: %s", seed, b.result.Text)
				}
			}
		}
	}
}

func TestTheSameInputsGiveTheSameAssessments(t *testing.T) {
	t.Parallel()
	limits := DefaultThresholds()
	limits.QualifySamples, limits.Window = 150, 30
	story := func() (assessments []Assessment, changes []Change) {
		w := &witness{bench: newBench(t, limits), limits: limits}
		r := rand.New(rand.NewPCG(3, 5))
		for range 40 {
			w.live(r, someWeather(r))
			assessments = append(assessments, w.result)
		}
		return assessments, w.changes
	}
	assessments, changes := story()
	again, changesAgain := story()
	if !reflect.DeepEqual(assessments, again) || !reflect.DeepEqual(changes, changesAgain) {
		t.Error("they differ")
	}
}

func BenchmarkObserveWhileQualifying(b *testing.B) {
	w := newBench(b, DefaultThresholds())
	w.each(time.Second, 48*ms)
	w.burst(4000, 48*ms)
	b.ReportAllocs()
	for b.Loop() {
		w.burst(100, 48*ms)
	}
}

func BenchmarkObserveOfAMember(b *testing.B) {
	w := newBench(b, DefaultThresholds())
	w.member = true
	w.each(1000*time.Second, ms)
	b.ReportAllocs()
	for b.Loop() {
		w.each(time.Second, ms)
		w.changes = nil
	}
}
