// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"
)

// report is the result of the benchmark.
type report struct {
	Seeds     int      `json:"seeds"`
	Hours     float64  `json:"hours"`
	Years     float64  `json:"hostYears"` // including the pasts and the warm-up
	Seconds   float64  `json:"cpuSeconds"`
	PerYear   float64  `json:"cpuSecondsPerHostYear"`
	Scenarios []*tally `json:"scenarios"`
	Goals     []*tally `json:"goals"`
}

// summarize builds the report from all outcomes, in the order of the scenarios.
func summarize(list []scenario, outcomes []outcome) *report {
	r := &report{}
	goals := map[goal]*tally{}
	var order []goal
	for i := range list {
		s := &list[i]
		t := &tally{Name: s.name, About: s.about}
		g := goals[s.goal]
		if g == nil {
			g = &tally{Name: string(s.goal)}
			goals[s.goal] = g
			order = append(order, s.goal)
		}
		for _, o := range outcomes {
			if o.scenario.name == s.name {
				t.add(o)
				g.add(o)
			}
		}
		t.finish()
		r.Scenarios = append(r.Scenarios, t)
	}
	for _, g := range order {
		goals[g].finish()
		r.Goals = append(r.Goals, goals[g])
	}
	return r
}

// print writes the tables as text.
func (r *report) print(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { fmt.Fprintf(out, format, args...) }
	table := func(title string, all []*tally) {
		line("%s\tin time\t95 %%\tmedian\tp95\ttransfers\tfalse\treplaced\tfalse\twrites/day\thost-years\n", title)
		for _, t := range all {
			line("%s\t%s\t%d\t%s\t%d\t%s\t%.1f\t%.2f\n", t.Name, t.detection(), t.Transfers.Count,
				t.FalseTransfers, t.Replacements.Count, t.FalseReplacements, t.WritesPerDay, t.Years)
		}
	}
	table("scenario", r.Scenarios)
	line("\n")
	table("goal", r.Goals)
	line("\n")
	if err := out.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%.2f host-years in %.0f CPU-seconds: %.0f per host-year\n", r.Years, r.Seconds, r.PerYear)
	return err
}

// detection returns the columns on how often and how soon the fault was found.
func (t *tally) detection() string {
	if t.Recall == nil {
		return "-\t-\t-\t-"
	}
	return fmt.Sprintf("%d of %d\t%.2f to %.2f\t%s\t%s", t.Found, t.Faults, t.Recall.Low, t.Recall.High,
		duration(t.Median), duration(t.P95))
}

// String returns the count with the rate and its bounds.
func (r rate) String() string {
	return fmt.Sprintf("%d (%.3g/y, %.3g to %.3g)", r.Count, r.PerYear, r.Low, r.High)
}

// duration formats seconds, and a negative number as "never".
func duration(s float64) string {
	switch {
	case s < 0:
		return "never"
	case s < 600:
		return fmt.Sprintf("%.0f s", s)
	}
	return fmt.Sprintf("%.0f min", s/60)
}

// save writes a result as JSON.
func save(file string, result any) error {
	data, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

// details writes what happened in a run, for debugging.
func details(w io.Writer, o outcome) {
	fmt.Fprintf(w, "%s seed %d: ", o.scenario.name, o.seed)
	if o.scenario.within > 0 {
		fmt.Fprintf(w, "%s after %s, limit %s; ", o.code, o.detected.Round(time.Second), o.limit.Round(time.Second))
	}
	fmt.Fprintf(w, "%d transfers, %d replacements, %d looks, %d record writes (%v)\n", len(o.transfers),
		len(o.replaced), o.looks, o.writes, o.wrote)
	for _, t := range o.transfers {
		fmt.Fprintf(w, "  %s false=%t %s\n", t.at.Round(time.Second), t.isFalse, t.text)
	}
	for _, r := range o.replaced {
		fmt.Fprintf(w, "  replaced: %s\n", r.text)
	}
}
