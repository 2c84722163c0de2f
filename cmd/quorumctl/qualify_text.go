// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/cmd/quorumctl/qualify"
)

// writeReport shows the measurements, then the findings.
func writeReport(p *page, r qualify.Report) {
	p.line("%s%s", word{r.Dir, bold}, display.After(" on ", r.Device))
	p.raw("")
	writeRuns(p, r.Runs)
	p.raw("")
	writeDistribution(p, r.Runs)
	p.raw("")
	writePeers(p, r.Peers)
	for _, f := range r.Findings {
		p.line("[%s] %s: %s", outcome(f.Result), word{f.Name, bold}, f.Text)
		writeRemedy(p, f.Remedy)
	}
	p.raw("")
	p.line("%s%s", outcome(r.Result), display.After(": ", strings.Join(decisiveFindings(r), ", ")))
}

// decisiveFindings returns the names of the findings that determine the result, or none for a pass.
func decisiveFindings(r qualify.Report) []string {
	var names []string
	for _, f := range r.Findings {
		if f.Result == r.Result && r.Result != qualify.Pass {
			names = append(names, f.Name)
		}
	}
	return names
}

func outcome(r qualify.Result) word {
	switch r {
	case qualify.Pass:
		return word{string(r), good}
	case qualify.Fail:
		return word{string(r), bad}
	case qualify.NotAvailable:
		return word{string(r), plain}
	default:
		return word{string(r), warn}
	}
}

func writeRuns(p *page, runs []qualify.Run) {
	t := table{head: []string{
		"WRITERS", "WRITES", "RATE", "P50", "P90", "P99", "95% CI", "P99.9", "MAX", "P99/1",
	}}
	for _, r := range runs {
		sure := "over " + display.Latency(r.P99Low)
		if r.P99High > 0 {
			sure = strings.TrimSuffix(display.Latency(r.P99Low), " ms") + "…" + display.Latency(r.P99High)
		}
		times := ""
		if one := runs[0].P99; one > 0 && r.Writers > 1 {
			times = display.ThreeDigits(r.P99/one) + "×"
		}
		t.add(cells(strconv.Itoa(r.Writers), strconv.Itoa(r.Writes), display.ThreeDigits(r.Rate)+"/s",
			display.Latency(r.P50), display.Latency(r.P90), display.Latency(r.P99), sure,
			display.Latency(r.P999), display.Latency(r.Max), times)...)
	}
	p.table(t)
	p.line("95%% CI: confidence interval of P99. P99/1: P99 relative to the P99 of one writer.")
}

func writePeers(p *page, peers []qualify.Peer) {
	if len(peers) == 0 {
		return
	}
	t := table{head: []string{"PEER", "CONNECTIONS", "REFUSED", "FAILED", "P50", "P99", "MAX", "LARGE REQUEST"}}
	for _, one := range peers {
		large := "lost"
		if one.Large {
			large = "answered"
		} else if !one.Small {
			large = "not answered"
		}
		t.add(cells(one.Address, strconv.Itoa(one.Tries), strconv.Itoa(one.Refused), strconv.Itoa(one.Failed),
			display.Latency(one.P50), display.Latency(one.P99), display.Latency(one.Max), large)...)
	}
	p.table(t)
	p.raw("")
}

const (
	drawnRuns = 3  // columns
	barWidth  = 24 // columns of the longest bar
)

// writeDistribution draws a histogram of the write latency on a logarithmic scale, with one column for each run. Of
// more than drawnRuns runs, it draws only the first ones and the last one.
func writeDistribution(p *page, runs []qualify.Run) {
	if len(runs) > drawnRuns {
		runs = append(slices.Clone(runs[:drawnRuns-1]), runs[len(runs)-1])
	}
	t := table{head: []string{"UP TO"}}
	counts := make([]map[float64]int, len(runs))
	most := make([]int, len(runs))
	bounds := map[float64]bool{}
	for i, r := range runs {
		t.head = append(t.head, strings.ToUpper(display.Count(r.Writers, "writer", "writers")))
		counts[i] = map[float64]int{}
		for _, b := range r.Distribution {
			counts[i][b.UpTo], bounds[b.UpTo] = b.Count, true
			most[i] = max(most[i], b.Count)
		}
	}
	for _, bound := range slices.Sorted(maps.Keys(bounds)) {
		row := cells(display.Latency(bound))
		for i := range runs {
			row = append(row, word{p.bar(counts[i][bound], most[i]), plain})
		}
		t.add(row...)
	}
	p.table(t)
	p.line("Each bar shows how many writes took at most the time in its row, and longer than the time in the row " +
		"above, relative to the longest bar in its column.")
}

// bar draws a count in proportion to the largest one. A count too small for a bar is a dot.
func (p *page) bar(n, most int) string {
	full, dot := "#", "."
	if p.blocks {
		full, dot = "█", "·"
	}
	switch length := (n*barWidth + most/2) / max(most, 1); {
	case n == 0:
		return ""
	case length == 0:
		return dot
	default:
		return strings.Repeat(full, length)
	}
}
