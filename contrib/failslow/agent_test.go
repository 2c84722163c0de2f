// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

// The benchmark repeats constants that it cannot import. The test fails if a line that declares one of them changes.
func TestTheSimulatedAgentHasTheTimesOfTheRealOne(t *testing.T) {
	t.Parallel()
	for file, lines := range map[string][]string{
		"agent/observe/syncs.go": {
			"syncsSpan   = 5 * time.Minute", "syncsFewest = 100 ", "syncsFew    = 20 ",
			"syncsEvery, syncsOldest = 10 * time.Second, 35 * time.Second", "syncsClean = time.Minute",
		},
		"disk/schedule.go": {
			"slow       = 100 * time.Millisecond", "restFactor = 10", "restLimit = time.Minute", "confirmations = 2",
			"confirmRest   = time.Second", "confirmLimit  = 3 * time.Second", "t.jitter = 0.9 + 0.2*rand.Float64()",
		},
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			if !strings.Contains(string(text), line) {
				t.Errorf("%s no longer has %q: change the benchmark as well", file, line)
			}
		}
	}
}

func TestTheSimulatedAgentHasTheDefaultLimits(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "agent", "config", "keys.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, sections, _ := strings.Cut(string(text), "type Disk struct {")
	l := limits()
	for key, want := range map[string]time.Duration{
		"interval": round, "settle": l.Settle, "promoteStable": l.PromoteStable, "steadyLag": l.SteadyLag,
		"lockTTL": l.LockTTL, "cooldown": l.Cooldown, "transferTimeout": l.TransferTimeout,
		"transferInterval": l.TransferInterval, "returnStable": l.ReturnStable, "returnMax": l.ReturnMax,
		"learnerStall": l.LearnerStall, "learnerMax": l.LearnerMax, "directInterval": time.Second,
		"walInterval": 10 * time.Second,
	} {
		_, after, found := strings.Cut(sections, `yaml:"`+key+`" default:"`)
		value, _, _ := strings.Cut(after, `"`)
		if got, err := time.ParseDuration(value); !found || err != nil || got != want {
			t.Errorf("the default of %s is %q, here it is %s", key, value, want)
		}
	}
	if l.UnhealthyGrace != 10*time.Minute || l.DeadGrace != 0 {
		t.Errorf("the documented grace period is 10 minutes, here it is %s", l.UnhealthyGrace)
	}
}

// Without a finding, the policy must decide to do nothing. Otherwise the benchmark would count transfers with a
// different reason.
func TestAHealthyClusterHasNothingToDo(t *testing.T) {
	t.Parallel()
	s := some(t, "healthy-five")[0]
	c, err := s.build(1, newPasts(realJudge))
	if err != nil {
		t.Fatal(err)
	}
	c.run(c.now+warmUp, nil)
	for _, h := range c.hosts {
		if d := policy.Decide(c.asVoter(h, c.now)); d.Step.Kind != policy.StepNone {
			t.Errorf("%s would %s", h.name, d.Step)
		}
	}
	d := policy.Decide(c.asSpare(c.now))
	if d.Step.Kind != policy.StepNone || len(d.Reasons) == 0 || d.Reasons[0].Code != policy.TargetMet {
		t.Errorf("the spare would %s: %v", d.Step, d.Reasons)
	}
	if n := len(c.transfers) + len(c.replaced); n > 0 {
		t.Errorf("%d transfers and replacements", n)
	}
}
