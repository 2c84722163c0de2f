// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

func TestAnUnhealthyStateLastsSinceItWasFirstObserved(t *testing.T) {
	t.Parallel()
	b := NewBuilder(hostConfig(), "boot-1", "i", false)
	for i, c := range []struct {
		at        int // all times are in seconds
		health    string
		code      health.Code
		recovers  bool
		instance  string
		unhealthy int // -1 if the host is not unhealthy
		hangs     int
	}{
		{1, "SLOW", "", false, "a", 0, -1},
		{11, "SLOW", "", false, "a", 10, -1},
		{21, "STALLED", "", false, "a", 20, 0},
		{31, "FAILED", "", false, "a", 30, 10},
		{41, "SLOW", "", false, "a", 40, -1},
		{51, "WARM", "", false, "a", -1, -1},
		{61, "SLOW", "", false, "a", 0, -1},
		{71, "SLOW", "", false, "b", 0, -1}, // reported by another agent
		{81, "SLOW", "", true, "b", -1, -1},
		{91, "SLOW", "", false, "b", 0, -1},
		{95, "STALLED", health.DiskStalled, false, "b", 4, 0},
		{97, "STALLED", health.EtcdStalled, false, "b", 6, -1}, // its disk does not hang
		{101, "OF A LATER VERSION", "", false, "b", -1, -1},
	} {
		r := quiet(uint64(i)+1, time.Duration(c.at)*time.Second)
		r.Hosts[2] = record.Host{
			ID: "id-n3", Name: "n3", PeerURL: "http://p3", Instance: c.instance, Health: c.health,
			HealthText: string(c.code), Recovers: c.recovers,
		}
		got := b.View(r, nil).Hosts[2].UnhealthySince
		since := func(s int) time.Duration {
			if s < 0 {
				return 0
			}
			return max(1, time.Duration(s)*time.Second)
		}
		if want := (policy.UnhealthySince{For: since(c.unhealthy), HangsFor: since(c.hangs)}); got != want {
			t.Errorf("at %d s: %+v, want %+v", c.at, got, want)
		}
	}
}

func TestTheWriteTimeOfARecordIsLimited(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[float64]time.Duration{
		0: 0, 0.25: 250 * time.Millisecond, -1: 0, 1e300: time.Hour, -1e300: 0,
	} {
		if got := writesTook(seconds); got != want {
			t.Errorf("%g s: %s, want %s", seconds, got, want)
		}
	}
}

func TestTheViewHasWhatAHostReportsAboutItsSlowDisk(t *testing.T) {
	t.Parallel()
	b := NewBuilder(hostConfig(), "boot-1", "i", false)
	r := quiet(1, time.Minute)
	r.Hosts[2] = record.Host{
		ID: "id-n3", Name: "n3", PeerURL: "http://p3", Health: "SLOW", HealsAfter: 720, Defective: true,
	}
	for _, slow := range []bool{false, true} {
		r.Assessment.SlowNow = slow
		v := b.View(r, nil)
		if h := v.Hosts[2]; h.HealsAfter != 12*time.Minute || !h.Defective || v.Hosts[1].Defective {
			t.Errorf("n3's disk heals after %s, and is defective: %t; n2's: %t", h.HealsAfter, h.Defective,
				v.Hosts[1].Defective)
		}
		if v.Health.FastAgain == slow {
			t.Errorf("this host's writes are slow now: %t, and fast again: %t", slow, v.Health.FastAgain)
		}
	}
}
