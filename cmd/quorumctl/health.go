// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
)

func (a *app) healthCommand() *cobra.Command {
	cmd := a.prints(&cobra.Command{
		Use:     "health [CODE]",
		GroupID: groupInspect,
		Short:   "Show this host's health state, or explain a finding",
		Long: "Show the health state of this host, its findings and the measurements behind them. With the code of\n" +
			"a finding (DISK_FSYNC_SLOW) or the name of a check (fsync), show what the check measures, its\n" +
			"limits, its current value, what it blocks, and the remedy.",
		Example:           examples("quorumctl health", "quorumctl health DISK_FSYNC_SLOW", "quorumctl health -o json"),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(findingNames(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.explainFinding(cmd.Context(), args[0])
			}
			return showStatus(cmd.Context(), a, "read the health",
				func(s control.Status) control.Health { return s.Health }, writeHealth)
		},
	}, printed{name: "health", of: control.Health{}}, printed{name: "finding", of: finding{}, with: "CODE"})
	cmd.AddCommand(a.muteCommand(), a.unmuteCommand())
	return cmd
}

func writeHealth(p *page, s control.Status) {
	h := s.Health
	p.line("%s%s", display.HealthState(h.State), display.After(": ", h.Text))
	if !h.Since.IsZero() {
		p.line("    since %s", display.Since(h.Since, s.Time))
	}
	if !h.Qualified {
		p.line("    not qualified: the disk has not passed the qualifying run that a first join needs")
	}
	writeRemedy(p, h.Remedy)
	for _, f := range h.Findings {
		p.line("[%s] %s: %s", display.HealthState(f.State), word{f.Code, bold}, f.Text)
		p.line("    in %s%s%s", f.Component, sinceText(f.Since, s.Time), mutedText(f.Muted))
		if f.Cause != "" {
			p.line("    likely cause: %s: %s", f.Cause, f.Why)
		}
		writeRemedy(p, f.Remedy)
	}
	writeMutes(p, s, "")
	p.raw("")
	writeDisk(p, h)
	p.raw("")
	if len(h.Devices) > 0 {
		p.table(devices(h.Devices))
		p.raw("")
	}
	if absent := mergeAbsences(h.NotAvailable); len(absent) > 0 {
		for _, n := range absent {
			p.line("not available: %s, in %s: %s", n.Check, n.Component, n.Why)
		}
		p.raw("")
	}
	p.line("next: %s", display.Next(s))
}

func mutedText(muted bool) string {
	if muted {
		return ", muted"
	}
	return ""
}

// writeDisk shows the latencies of the probe with their limit, unless the disk has stalled or failed since.
func writeDisk(p *page, h control.Health) {
	d := h.Disk
	if display.Stopped(h.State) {
		d.WAL, d.Direct = control.Lane{}, control.Lane{}
	}
	t := table{head: []string{"FSYNC", "P50", "P99", "MAX", "SAMPLES", "P99 LIMIT"}}
	t.add(latencyRow("wal", d.WAL, limit(d))...)
	t.add(latencyRow("direct", d.Direct, "")...)
	p.table(t)
	if display.Stopped(h.State) {
		p.line("latencies measured before the state became %s are not shown", h.State)
	}
	if d.LeftOut > 0 {
		p.line("discarded: %d of the last minute's %s, because of CPU starvation", d.LeftOut,
			display.Count(int(d.Samples), "sample", "samples"))
	}
	if d.InFlightOp != "" {
		p.line("in flight: %s for %s", d.InFlightOp, display.Latency(d.InFlightSeconds))
	}
	free := ""
	if d.FreeBytes > 0 {
		free = " · free " + display.Size(float64(d.FreeBytes))
	}
	if d.AgeSeconds == nil {
		p.line("never measured%s", free)
		return
	}
	p.line("measured %s ago%s", display.Age(d.AgeSeconds), free)
}

// devices returns the table of the devices below etcd's data.
func devices(all []control.Device) table {
	t := table{head: []string{"DEVICE", "KIND", "ON", "NAME", "SERIAL", "MEDIUM", "CACHE", "FLUSH", "ERRORS"}}
	for _, d := range all {
		kind, flush, errors := d.Kind, "", ""
		if d.Array != nil {
			kind = d.Array.Level
		}
		if d.FlushSeconds > 0 {
			flush = display.Latency(d.FlushSeconds)
		}
		if d.Errors != nil {
			errors = strconv.FormatUint(*d.Errors, 10)
		}
		t.add(cells(d.Name, kind, strings.Join(d.On, " "), cmp.Or(d.Label, d.Model), d.Serial, d.Medium,
			strings.TrimPrefix(d.Cache, "write "), flush, errors)...)
	}
	return t
}

func limit(d control.Disk) string {
	if d.LimitSeconds == 0 {
		return ""
	}
	return display.Latency(d.LimitSeconds)
}

func writeRemedy(p *page, remedy string) {
	if remedy != "" {
		p.line("    → %s", remedy)
	}
}

func latencyRow(name string, l control.Lane, limit string) []word {
	if l.Count == 0 {
		return cells(name, "-", "-", "-", "0", limit)
	}
	return cells(name, display.Latency(l.P50), display.Latency(l.P99), display.Latency(l.Max),
		strconv.FormatUint(l.Count, 10), limit)
}
