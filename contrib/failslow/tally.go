// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"time"
)

// tally sums up the outcomes of a scenario, or of several.
type tally struct {
	Name   string  `json:"name"`
	About  string  `json:"about,omitempty"`
	Runs   int     `json:"runs"`
	Years  float64 `json:"hostYears"`
	Faults int     `json:"faults"` // number of runs with a fault that must be found
	Found  int     `json:"found"`  // number of faults found in time
	// Ever counts faults found at any time in the run.
	Ever   int       `json:"foundEver"`
	Recall *interval `json:"recall,omitempty"` // Found/Faults with its 95 % Wilson interval
	// Median and P95 are quantiles of the times to detection, in seconds. A fault that was not found counts as the
	// longest time, which is shown as -1.
	Median            float64 `json:"medianSeconds,omitempty"`
	P95               float64 `json:"p95Seconds,omitempty"`
	Transfers         rate    `json:"transfers"`
	FalseTransfers    rate    `json:"falseTransfers"`
	Replacements      rate    `json:"replacements"`
	FalseReplacements rate    `json:"falseReplacements"`
	Replaced          int     `json:"runsWithReplacement"`
	WritesPerDay      float64 `json:"recordWritesPerHostDay"`

	times  []time.Duration
	lasted time.Duration
	writes int
}

// interval is a share with the bounds of its confidence interval.
type interval struct {
	Share float64 `json:"share"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// rate is a count, and the corresponding rate per host-year with its Poisson bounds.
type rate struct {
	Count   int     `json:"count"`
	PerYear float64 `json:"perHostYear"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
}

const year = 365.25 * 24 * time.Hour

// never is the time to detect a fault that was not found.
const never = time.Duration(1<<63 - 1)

// add counts an outcome.
func (t *tally) add(o outcome) {
	t.Runs++
	t.lasted += o.measured * time.Duration(o.hosts)
	t.writes += o.writes
	if o.scenario.within > 0 {
		t.Faults++
		took := never
		if o.detected >= 0 {
			t.Ever++
			took = o.detected
		}
		if took <= o.limit {
			t.Found++
		}
		t.times = append(t.times, took)
	}
	for _, moved := range o.transfers {
		t.Transfers.Count++
		if moved.isFalse {
			t.FalseTransfers.Count++
		}
	}
	t.Replacements.Count += len(o.replaced)
	for _, r := range o.replaced {
		if !o.scenario.replaces || r.host != 0 {
			t.FalseReplacements.Count++
		}
	}
	if len(o.replaced) > 0 {
		t.Replaced++
	}
}

// finish calculates the rates and bounds.
func (t *tally) finish() {
	t.Years = t.lasted.Hours() / year.Hours()
	for _, r := range []*rate{&t.Transfers, &t.FalseTransfers, &t.Replacements, &t.FalseReplacements} {
		low, high := poisson(r.Count)
		r.PerYear, r.Low, r.High = float64(r.Count)/t.Years, low/t.Years, high/t.Years
	}
	t.WritesPerDay = float64(t.writes) / (t.Years * 365.25)
	if t.Faults == 0 {
		return
	}
	low, high := wilson(t.Found, t.Faults)
	t.Recall = &interval{float64(t.Found) / float64(t.Faults), low, high}
	slices.Sort(t.times)
	t.Median, t.P95 = inSeconds(quantile(t.times, 0.5)), inSeconds(quantile(t.times, 0.95))
}

// inSeconds returns -1 for never.
func inSeconds(d time.Duration) float64 {
	if d == never {
		return -1
	}
	return d.Seconds()
}
