// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// reign runs three voters, judges their disks with package health, and decides for n1, which leads. It returns the
// time of the first leadership transfer, 0 if there was none, and whether n1 was ever WARM or worse.
func reign(t *testing.T, seed uint64, length time.Duration, disks [3]nightDisk) (moved time.Duration, unfit bool) {
	t.Helper()
	c := hostConfig()
	c.Mode, c.Cluster.Voters = "manage", 3
	c.Timing.Interval, c.Timing.Settle, c.Timing.TransferInterval = nightLook, 6*time.Second, time.Minute
	c.Host.ID, c.Host.Name, c.Etcd.PeerURL = "id-n1", "n1", "http://p1"
	b := NewBuilder(c, "boot-1", "i", false)
	var voters [3]*nightVoter
	for i, disk := range disks {
		voters[i] = newNightVoter(t, health.DefaultThresholds(), disk, seed<<2+uint64(i))
	}
	for number := uint64(1); ; number++ {
		since := time.Duration(number) * nightLook
		if since > length {
			return 0, unfit
		}
		r := quiet(number, nightBegin+since)
		for i, v := range voters {
			h, assessment := v.advance(since)
			h.ID, h.PeerURL, h.Role, h.Mode = r.Hosts[i].ID, r.Hosts[i].PeerURL, "voter", "manage"
			h.WriteMean, h.WritesAt = assessment.Writes.Most.Seconds(), time.Unix(int64(since/time.Second), 0)
			if h.Name = fmt.Sprintf("n%d", i+1); i == 0 {
				h.Instance, r.Assessment = "i", assessment
			}
			r.Hosts[i] = h
		}
		v := b.View(r, nil)
		unfit = unfit || policy.UnfitToLead(v.Health)
		if d := policy.Decide(v); d.Step.Kind == policy.StepLeaderStepsDown {
			return since, unfit
		}
	}
}

// virtual is the disk of a virtual machine near the limit of 10 ms. For the given length after from, the given
// percentage of its writes exceeds the limit; at other times, 1 %.
func virtual(from, length time.Duration, percent int) nightDisk {
	return func(at time.Duration, draw *rand.Rand) time.Duration {
		share := 1
		if at >= from && at < from+length {
			share = percent
		}
		if draw.IntN(100) < share {
			return 10*time.Millisecond + time.Duration(draw.Int64N(int64(8*time.Millisecond)))
		}
		return around(4*time.Millisecond, draw)
	}
}

// TestALeaderAsFastAsTheOthersKeepsTheLeadership makes the hosts equally slow, one five minutes after the other: for
// six minutes, 6 % of a host's writes take over 10 ms. A leadership transfer would be needless.
func TestALeaderAsFastAsTheOthersKeepsTheLeadership(t *testing.T) {
	t.Parallel()
	for seed := range uint64(seeds / 4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			moved, unfit := reign(t, seed, 30*time.Minute, [3]nightDisk{
				virtual(10*time.Minute, 6*time.Minute, 6), virtual(15*time.Minute, 6*time.Minute, 6),
				virtual(20*time.Minute, 6*time.Minute, 6),
			})
			if moved > 0 || !unfit {
				t.Errorf("leadership was transferred after %s; the leader was WARM: %t", moved, unfit)
			}
		})
	}
}

// TestALeaderSlowerThanTheOthersTransfersTheLeadership checks that comparing hosts does not hide a slow disk.
func TestALeaderSlowerThanTheOthersTransfersTheLeadership(t *testing.T) {
	t.Parallel()
	const from, ms = 10 * time.Minute, time.Millisecond
	quick := ssd(0, 0, 0)
	for name, c := range map[string]struct {
		longer, within time.Duration
	}{
		"10 ms":  {10 * ms, 90 * time.Second},
		"30 ms":  {30 * ms, 30 * time.Second},
		"150 ms": {150 * ms, 30 * time.Second}, // in the first 20 s, it may be a burst
		"500 ms": {500 * ms, 20 * time.Second},
	} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprintf("%s, seed %d", name, seed), func(t *testing.T) {
				t.Parallel()
				moved, _ := reign(t, seed, from+5*time.Minute, [3]nightDisk{
					ssd(from, time.Hour, c.longer), quick, quick,
				})
				if moved < from || moved > from+c.within {
					t.Errorf("slow from %s on, and leadership was transferred after %s", from, moved)
				}
			})
		}
	}
}

func TestAMeasurementOfAnotherHostAgesUntilItPublishesAnother(t *testing.T) {
	t.Parallel()
	b := NewBuilder(hostConfig(), "boot-1", "i", false)
	look := func(number int, mean float64, at int64) policy.Writes {
		r := quiet(uint64(number), time.Duration(number)*time.Second)
		r.Hosts[0].WriteMean, r.Hosts[0].WritesAt = mean, time.Unix(at, 0)
		return b.View(r, nil).Hosts[0].Writes
	}
	for i, c := range []struct {
		mean float64
		at   int64
		want policy.Writes
	}{
		{0.004, 1, policy.Writes{Mean: 4 * time.Millisecond}},
		{0.004, 1, policy.Writes{Mean: 4 * time.Millisecond, Age: time.Second}},
		{0.004, 1, policy.Writes{Mean: 4 * time.Millisecond, Age: 2 * time.Second}},
		{0.004, 2, policy.Writes{Mean: 4 * time.Millisecond}},
		{0, 0, policy.Writes{}},
		{-1, 3, policy.Writes{}},
	} {
		if got := look(i+1, c.mean, c.at); got != c.want {
			t.Errorf("look %d: %+v, want %+v", i+1, got, c.want)
		}
	}
}
