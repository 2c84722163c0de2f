// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"
)

func TestSlowOperationsAreFollowedByAProportionalRest(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, c := range []struct {
		name       string
		interval   time.Duration
		took, want []time.Duration
	}{
		{"quick", time.Second, []time.Duration{5 * ms}, []time.Duration{time.Second}},
		{"at the limit", 20 * ms, []time.Duration{100 * ms}, []time.Duration{20 * ms}},
		{
			"slow: two are confirmed, and then the disk rests for all", time.Second,
			[]time.Duration{900 * ms, 900 * ms, 900 * ms, 900 * ms, 900 * ms},
			[]time.Duration{time.Second, time.Second, 25 * time.Second, time.Second, time.Second},
		},
		{
			"slow now and then", time.Second,
			[]time.Duration{900 * ms, ms, 900 * ms, ms, 900 * ms, ms, 900 * ms},
			[]time.Duration{
				time.Second, time.Second, time.Second, time.Second, 23 * time.Second, time.Second, time.Second,
			},
		},
		{
			"slow in a burst", 20 * ms,
			[]time.Duration{150 * ms, 150 * ms, 150 * ms, ms},
			[]time.Duration{time.Second, time.Second, 2500 * ms, 20 * ms},
		},
		{
			"so slow that two are enough", time.Second,
			[]time.Duration{1600 * ms, 1600 * ms, 1600 * ms},
			[]time.Duration{time.Second, 31 * time.Second, time.Second},
		},
		{
			"slow, but the interval is longer", 10 * time.Second,
			[]time.Duration{150 * ms, 150 * ms},
			[]time.Duration{10 * time.Second, 10 * time.Second},
		},
		{
			"a stall, then healthy", time.Second,
			[]time.Duration{10 * time.Minute, ms, 900 * ms},
			[]time.Duration{time.Minute, time.Second, time.Second},
		},
	} {
		lane := &task{interval: func(bool) time.Duration { return c.interval }, jitter: 1}
		rested := c.interval
		for i, took := range c.took {
			lane.ended += rested + took
			lane.settle(rested, took)
			if rested = lane.due() - lane.ended; rested != c.want[i] {
				t.Errorf("%s: rests %s after the %d. operation, want %s", c.name, rested, i+1, c.want[i])
			}
		}
	}
}

// The probe keeps a slow disk busy for at most a tenth of the time, plus six seconds.
func TestADiskInTroubleIsLeftAloneForNineTenthsOfTheTime(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 5))
		lane := &task{interval: func(bool) time.Duration { return time.Second }, jitter: 1}
		slowest := time.Duration(r.Int64N(int64(6*time.Second))) + slow
		var busy, now time.Duration
		for now < time.Hour {
			took := time.Millisecond
			if r.IntN(3) > 0 {
				took = slow + time.Duration(r.Int64N(int64(slowest)))
				busy += took
			}
			rested := max(0, lane.due()-now)
			now += rested + took
			lane.settle(rested, took)
			lane.ended = now
		}
		if most := now/restFactor + confirmations*confirmLimit; busy > most {
			t.Errorf("seed %d: busy for %s of %s, at most %s", seed, busy, now, most)
		}
	}
}

func TestRestsVaryByATenth(t *testing.T) {
	t.Parallel()
	lane := &task{interval: func(bool) time.Duration { return time.Second }, act: func() error { return nil }}
	if lane.due() != 0 {
		t.Error("the first run is not due at once")
	}
	least, most := time.Hour, time.Duration(0)
	for range 1000 {
		lane.run()
		lane.took = 0 // independent of the load of this machine
		rest := lane.due() - lane.ended
		least, most = min(least, rest), max(most, rest)
	}
	if least < 900*time.Millisecond || most > 1100*time.Millisecond || most-least < 150*time.Millisecond {
		t.Errorf("rests are %s to %s", least, most)
	}
}

func TestAFailedRunIsNotRepeatedAtTheRateOfABurst(t *testing.T) {
	t.Parallel()
	p := new(page)
	p.burst.Store(1)
	prober, err := newProber(p, settings{dir: "/", target: "/", direct: time.Second, wal: 10 * time.Second, burst: 50})
	if err != nil {
		t.Fatal(err)
	}
	wal := prober.wal
	wal.act = func() error { return errors.New("no") }
	wal.run()
	if rest := wal.due() - wal.ended; rest < 9*time.Second {
		t.Errorf("rests %s after an error", rest)
	}
	wal.act = func() error { return nil }
	wal.run()
	wal.took = 0 // independent of the load of this machine
	if rest := wal.due() - wal.ended; rest < 18*time.Millisecond || rest > 22*time.Millisecond {
		t.Errorf("rests %s in a burst", rest)
	}
	p.burst.Store(0)
	if rest := wal.due() - wal.ended; rest < 9*time.Second {
		t.Errorf("rests %s once the burst is over", rest)
	}
	if earliest(prober.tasks) == wal {
		t.Error("the lane that has just run is first")
	}
}

func TestTheCanaryDetectsLateWakeups(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	c := newCanary()
	c.arm(0)
	now := time.Duration(c.dozed.Load())
	for _, x := range []struct {
		name                string
		late, doze, latency time.Duration
		want                bool
	}{
		{"armed just now", 0, 0, 0, false},
		{"a doze within the limit", 0, 15 * ms, 1 * ms, false},
		{"a doze that does not end", 0, 16 * ms, 1 * ms, true},
		{"a late wake before", 8 * ms, 1 * ms, 30 * ms, true},
		{"a late wake in a long operation", 8 * ms, 1 * ms, 6 * time.Second, false},
		{"many late wakes in a long operation", 1600 * ms, 1 * ms, 6 * time.Second, true},
	} {
		c.late.Store(int64(x.late))
		if got := c.contaminated(x.latency, now+x.doze); got != x.want {
			t.Errorf("%s: contaminated is %v", x.name, got)
		}
	}
	c.arm(0)
	if c.late.Load() != 0 {
		t.Error("a late wake is remembered for the next operation")
	}
}

func TestTheCanaryKeepsWatchingWhileArmed(t *testing.T) {
	t.Parallel()
	c := newCanary()
	c.arm(0)
	armed := c.dozed.Load()
	eventually(t, "five dozes", func() bool {
		return c.dozed.Load() > armed+int64(5*canaryPeriod)
	}, func() string { return "" })
	c.disarm()
	if c.woken(); c.timer.Stop() {
		t.Error("it continues after it was disarmed")
	}
}

func TestTheDozeBeforeAnOperationCounts(t *testing.T) {
	t.Parallel()
	c := newCanary()
	c.arm(8 * time.Millisecond)
	defer c.disarm()
	if now := time.Duration(c.dozed.Load()); !c.contaminated(time.Millisecond, now) {
		t.Error("CPU starvation at the start of the operation is missed")
	}
}
