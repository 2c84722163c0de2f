// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/health"
)

// night simulates three voters in virtual time. Package health judges their disks, and a spare's agent makes the view.
// Only the disks, etcd and its records are simulated.
type night struct {
	limits   health.Thresholds
	length   time.Duration
	replaced time.Duration // when a spare would first have replaced a voter; 0 if never
	slow     bool          // a voter was SLOW
}

const (
	nightLook  = 5 * time.Second
	nightGrace = 10 * time.Minute
	nightBegin = time.Hour // what the clock shows when the night begins
)

// nightDisk returns the duration of a write that begins at the given time since the start. A nil disk is always fast.
type nightDisk func(at time.Duration, draw *rand.Rand) time.Duration

// around draws the duration of a write around a median.
func around(median time.Duration, draw *rand.Rand) time.Duration {
	return time.Duration(float64(median) * math.Exp(0.35*draw.NormFloat64()))
}

// nightVoter is a voter with its disk, its agent's judge and its etcd's counters.
type nightVoter struct {
	disk    nightDisk
	draw    *rand.Rand // for the disk's write times
	judge   *health.Judge
	counted health.Histogram
	witness witness
}

func newNightVoter(t *testing.T, limits health.Thresholds, disk nightDisk, seed uint64) *nightVoter {
	t.Helper()
	judge, err := health.New(limits)
	if err != nil {
		t.Fatal(err)
	}
	v := &nightVoter{disk: disk, judge: judge, draw: rand.New(rand.NewPCG(seed, 1))} //nolint:gosec // no secret
	v.counted = health.Histogram{Known: true, Counts: make([]uint64, 15)}
	for i := range 14 { // the same bounds as in etcd's histogram
		v.counted.Bounds = append(v.counted.Bounds, 0.001*math.Pow(2, float64(i)))
	}
	return v
}

// advance simulates the time since the last round, and returns what the host then publishes.
func (v *nightVoter) advance(since time.Duration) (h record.Host, judged health.Assessment) {
	in := health.Input{Now: nightBegin + since, Member: true}
	in.Disk = health.DiskReading{Alive: true, NextIn: time.Second, Total: 1 << 40, Free: 1 << 39}
	for at := since - nightLook + time.Second; at <= since; at += time.Second {
		lane := disk.LaneDirect
		if at%(10*time.Second) == 0 {
			lane = disk.LaneWAL
		}
		in.Disk.Samples = append(in.Disk.Samples, disk.Sample{
			Lane: lane, End: nightBegin + at, Latency: v.disk(at, v.draw),
		})
		for range 5 { // etcd's own fsyncs in a second
			i, took := 0, v.disk(at, v.draw).Seconds()
			for i < len(v.counted.Bounds) && took > v.counted.Bounds[i] {
				i++
			}
			v.counted.Counts[i]++
		}
	}
	judged, _ = v.judge.Observe(in)
	return record.Host{
		Health: judged.State.String(), HealthText: string(judged.Code), Recovers: judged.Recovers,
		Spares: health.Everything.Without(judged.Gates).Names(),
	}, judged
}

// run runs the night with these disks, and records the result.
func (n *night) run(t *testing.T, seed uint64, disks [3]nightDisk) {
	t.Helper()
	c := hostConfig()
	c.Cluster.Voters, c.Repair.Unhealthy, c.Repair.PerDay = 3, config.Grace(nightGrace), 2
	c.Timing.Interval, c.Timing.LockTTL, c.Timing.PromoteLag = nightLook, 30*time.Second, 100
	c.Host.ID, c.Host.Name, c.Etcd.PeerURL = "id-n4", "n4", "http://p4"
	b := NewBuilder(c, "boot-1", "i", false)
	var voters [3]*nightVoter
	for i, disk := range disks {
		if disk != nil {
			voters[i] = newNightVoter(t, n.limits, disk, seed<<2+uint64(i))
		}
	}
	for round := uint64(1); n.replaced == 0; round++ {
		since := time.Duration(round) * nightLook
		if since > n.length {
			return
		}
		r := quiet(round, nightBegin+since)
		r.Fsyncs = map[uint64]policy.Fsyncs{}
		for i := range r.Hosts {
			h := record.Host{Health: "OK"}
			if v := voters[i]; v != nil {
				var judged health.Assessment
				h, judged = v.advance(since)
				n.slow = n.slow || judged.State == health.Slow
				if since%(2*nightLook) == 0 {
					counted := v.counted
					counted.Counts = append([]uint64(nil), counted.Counts...)
					v.witness.take(health.EtcdReading{At: r.At, WALFsync: counted}, n.limits.FsyncSlow)
				}
				r.Fsyncs[uint64(i)+1] = v.witness.fsyncs(r.At)
			}
			h.ID, h.PeerURL, h.Role = r.Hosts[i].ID, r.Hosts[i].PeerURL, "voter"
			h.Mode, h.Qualified = "manage", true
			r.Hosts[i] = h
		}
		r.Hosts = append(r.Hosts, record.Host{
			ID: "id-n4", Name: "n4", PeerURL: "http://p4", Role: "spare", Mode: "manage", Health: "OK", Qualified: true,
		})
		for _, s := range policy.UnhealthyVoters(b.View(r, nil)) {
			if s.GraceLeft == 0 && s.Held == "" {
				n.replaced = since
			}
		}
	}
}

// ssd is a fast disk. For the given length after from, every write takes longer.
func ssd(from, length, longer time.Duration) nightDisk {
	return func(at time.Duration, draw *rand.Rand) time.Duration {
		took := around(time.Millisecond, draw)
		if at >= from && at < from+length {
			took += longer
		}
		return took
	}
}

const seeds = 24

func TestAVoterThatIsSlowForFiveToTenMinutesIsNotReplaced(t *testing.T) {
	t.Parallel()
	for seed := range uint64(seeds) {
		for name, length := range map[string]time.Duration{
			"8 min":      8 * time.Minute,
			"5 - 10 min": 5*time.Minute + time.Duration(seed)*5*time.Minute/seeds,
		} {
			t.Run(fmt.Sprintf("%s, seed %d", name, seed), func(t *testing.T) {
				t.Parallel()
				n := night{limits: health.DefaultThresholds(), length: 40 * time.Minute}
				n.run(t, seed, [3]nightDisk{nil, nil, ssd(10*time.Minute, length, 150*time.Millisecond)})
				if n.replaced > 0 || !n.slow {
					t.Errorf("slow for %s from minute 10 on: replaced after %s; it was SLOW: %t", length, n.replaced,
						n.slow)
				}
			})
		}
	}
}

func TestADiskThatIsSlowForUpToAnHourAndNotDefectiveIsNotReplaced(t *testing.T) {
	t.Parallel()
	for seed := range uint64(seeds / 4) {
		length := 15*time.Minute + time.Duration(seed)*9*time.Minute
		n := night{limits: health.DefaultThresholds(), length: 80 * time.Minute}
		n.run(t, seed, [3]nightDisk{nil, nil, ssd(10*time.Minute, length, 120*time.Millisecond)})
		if n.replaced > 0 || !n.slow {
			t.Errorf("seed %d: slow for %s from minute 10 on: replaced after %s; it was SLOW: %t", seed, length,
				n.replaced, n.slow)
		}
	}
}

func TestAPermanentlySlowVoterIsReplacedWithinSixTimesTheGraceAndThreeMinutes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(seeds / 4) {
		n := night{limits: health.DefaultThresholds(), length: 80 * time.Minute}
		from := 10 * time.Minute
		n.run(t, seed, [3]nightDisk{nil, nil, ssd(from, 2*time.Hour, 150*time.Millisecond)})
		if n.replaced < from+6*nightGrace || n.replaced > from+6*nightGrace+3*time.Minute {
			t.Errorf("seed %d: slow from minute 10 on, and replaced after %s", seed, n.replaced)
		}
	}
}

// TestTwoVotersThatBecomeSlowAtDifferentTimesAreNotReplaced makes the writes of two of three disks take ten times as
// long. The second follows within five minutes. It becomes WARM, and SLOW later if at all.
func TestTwoVotersThatBecomeSlowAtDifferentTimesAreNotReplaced(t *testing.T) {
	t.Parallel()
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			draw := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // no secret
			slows := func(from, median time.Duration) nightDisk {
				return func(at time.Duration, draw *rand.Rand) time.Duration {
					if at >= from {
						return around(10*median, draw)
					}
					return around(median, draw)
				}
			}
			later := time.Duration(draw.Int64N(int64(5 * time.Minute)))
			// the disk that slows down first soon becomes SLOW; the other may become only WARM
			n := night{limits: health.DefaultThresholds(), length: time.Hour}
			second := 3*time.Millisecond + time.Duration(draw.Int64N(int64(4*time.Millisecond)))
			n.limits.FsyncWarm, n.limits.FsyncClear = 30*time.Millisecond, 20*time.Millisecond
			n.run(t, seed, [3]nightDisk{
				nil, slows(10*time.Minute+later, second), slows(10*time.Minute, 15*time.Millisecond),
			})
			if n.replaced > 0 || !n.slow {
				t.Errorf("the first is slow from minute 10 on, the second %s later: replaced after %s; SLOW: %t", later,
					n.replaced, n.slow)
			}
		})
	}
}

// TestHealthyHDDsWithANightlyBackupAreNotReplaced runs a backup from one voter's rotating disk for 20 to 60 min: writes
// take three times as long, and 3 of 100 take 100 to 400 ms. The other two disks are always fast.
func TestHealthyHDDsWithANightlyBackupAreNotReplaced(t *testing.T) {
	t.Parallel()
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			n := night{limits: health.DefaultThresholds(), length: 80 * time.Minute}
			n.limits.FsyncWarm, n.limits.FsyncClear = 50*time.Millisecond, 40*time.Millisecond
			until := 30*time.Minute + time.Duration(seed)*40*time.Minute/seeds
			n.run(t, seed, [3]nightDisk{nil, nil, func(at time.Duration, draw *rand.Rand) time.Duration {
				switch backup := at >= 10*time.Minute && at < until; {
				case backup && draw.IntN(100) < 3:
					return 100*time.Millisecond + time.Duration(draw.Int64N(int64(300*time.Millisecond)))
				case backup:
					return around(42*time.Millisecond, draw)
				}
				return around(14*time.Millisecond, draw)
			}})
			if n.replaced > 0 {
				t.Errorf("a backup until %s: replaced after %s", until, n.replaced)
			}
			t.Logf("a backup until %s; it was SLOW: %t", until, n.slow)
		})
	}
}
