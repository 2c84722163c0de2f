// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/disk"
)

func TestAJudgeOfSomeChecksJudgesThemAsOneOfAllDoes(t *testing.T) {
	t.Parallel()
	all, err := New(DefaultThresholds())
	if err != nil {
		t.Fatal(err)
	}
	some, err := NewOf(DefaultThresholds(), "fsync", "cpu")
	if err != nil {
		t.Fatal(err)
	}
	states := map[State]bool{}
	for i := range 4000 {
		now := time.Duration(i) * time.Second
		latency := time.Duration(1+i%7) * ms
		if i%1000 > 900 {
			latency = 150 * ms
		}
		in := Input{Now: now, Member: true, Disk: DiskReading{
			Alive: true, Samples: []disk.Sample{{End: now, Latency: latency, Contaminated: i%2000 > 1900 && i%3 == 0}},
		}}
		all.Observe(in)
		some.Observe(in)
		for _, c := range all.checks {
			for _, s := range some.checks {
				if c.Name == s.Name && (c.State != s.State || c.Code != s.Code || c.Since != s.Since) {
					t.Fatalf("after %s: %s is %s %s, want %s %s", now, s.Name, s.State, s.Code, c.State, c.Code)
				}
			}
		}
		states[some.checks[0].State] = true
	}
	if !states[OK] || !states[Warm] || !states[Slow] {
		t.Errorf("only the states %v were compared", states)
	}
}

func TestAJudgeOfAnUnknownCheckIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := NewOf(DefaultThresholds(), "fsync", "nonsense"); err == nil {
		t.Error("it is accepted")
	}
}
