// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sample returns a report of two rounds. In the first round one side could not run.
func sample() Report {
	r := Report{
		Version: reportVersion, Time: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), Clocks: "shipped", Etcd: "3.6.16",
		Machine: Machine{Cores: 2, Arch: "amd64", Kernel: "6.1", Go: "go1.26"},
	}
	of := row{
		name: "join/empty", plainly: "a script", ours: "an agent",
		figures: []figure{
			{name: worstGap, unit: "ms"},
			{name: machineGap, unit: "ms", basis: true},
			{name: taken, unit: "s", digits: 1},
		},
	}
	r.add(of, nil, values{worstGap: 20.4, machineGap: 9, taken: 70}, "there is no script")
	r.add(of, values{worstGap: 30}, values{worstGap: 12, machineGap: 30, taken: 68.26}, "")
	return r
}

func TestTheTableShowsTheMedianWithItsUnitAndTheWorstOfSeveral(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	r := sample()
	r.print(&out)
	want := `2026-11-22, 2 cores, Linux 6.1 on amd64, go1.26, etcd 3.6.16; quorumd's times: shipped

ROW         FIGURE                     PLAIN  QUORUMD
join/empty  worst write gap            30 ms  20 ms (worst 20)
            bystander etcd, worst gap  –      30 ms
            taken                      –      70.0 s (worst 70.0)

join/empty
  plain:   a script
  quorumd: an agent
  not run: there is no script
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestAWrittenReportIsReadBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "figures.json")
	r := sample()
	if err := r.write(path); err != nil {
		t.Fatal(err)
	}
	got, err := readReport(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, got); diff != "" {
		t.Error(diff)
	}
}

func TestAFileThatIsNotAReportIsRefusedWithReasonAndRemedy(t *testing.T) {
	t.Parallel()
	for want, text := range map[string]string{
		"its version is 7, and this bench reads version 1": `{"version": 7, "rows": [{}]}`,
		"it contains no rows":                              `{"version": 1}`,
		"unexpected end of JSON input":                     `{"version": 1`,
		"it is larger than":                                strings.Repeat(" ", maxReport+1),
		"cannot unmarshal":                                 `{"version": 1, "rows": 3}`,
		"create it with make bench JSON":                   `[]`,
	} {
		path := filepath.Join(t.TempDir(), "figures.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readReport(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestAComparisonShowsChangesAndRowsOfOneReport(t *testing.T) {
	t.Parallel()
	older, newer := sample(), sample()
	newer.Clocks, newer.Machine.Cores, newer.Etcd = "quick", 8, "3.7.0"
	newer.Rows[0].Figures[0].Quorumd, newer.Rows[0].Figures[0].Plain = []float64{40.8}, []float64{15}
	older.add(row{name: "rest"}, nil, nil, "")
	newer.add(row{name: "probe"}, nil, nil, "")
	var out strings.Builder
	compare(&out, older, newer)
	want := `different machine: was {Cores:2 Arch:amd64 Kernel:6.1 Go:go1.26}, now {Cores:8 Arch:amd64 Kernel:6.1 Go:go1.26}
different etcd: was 3.6.16, now 3.7.0
different quorumd timings: was shipped, now quick
ROW         FIGURE                     BEFORE               NOW                  CHANGE  PLAIN BEFORE  NOW    CHANGE
join/empty  worst write gap            20 ms (worst 20)     41 ms                +100 %  30 ms         15 ms  -50 %
            bystander etcd, worst gap  30 ms                30 ms                same    –             –      –
            taken                      70.0 s (worst 70.0)  70.0 s (worst 70.0)  same    –             –      –
only before: rest
only now: probe
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestAChangeFromNothingHasNoPercentage(t *testing.T) {
	t.Parallel()
	if got := change([]float64{0}, []float64{3}); got != "from 0" {
		t.Error(got)
	}
}
