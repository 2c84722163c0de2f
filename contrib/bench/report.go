// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"
)

// reportVersion is the version of the file format. readReport refuses all others.
const reportVersion = 1

// maxReport bounds how many bytes of a file are read.
const maxReport = 1 << 20

// Report is the result of a run.
type Report struct {
	Version int       `json:"version"`
	Time    time.Time `json:"time"`
	Machine Machine   `json:"machine"`
	Etcd    string    `json:"etcd"`   // version of etcd
	Clocks  string    `json:"clocks"` // "shipped" for quorumd's default times, or "quick"
	Rows    []Result  `json:"rows"`
}

// Machine describes the machine of the run. Figures from different machines cannot be compared.
type Machine struct {
	Cores  int    `json:"cores"`
	Arch   string `json:"arch"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
}

// Result is the result of one row.
type Result struct {
	Row     string     `json:"row"`
	Plain   string     `json:"plain"`   // how the task was done without quorumd
	Quorumd string     `json:"quorumd"` // how quorumd did the task
	Note    string     `json:"note,omitempty"`
	Figures []Measured `json:"figures"`
}

// Measured is one figure, with a value for each round.
type Measured struct {
	Name   string `json:"name"`
	Unit   string `json:"unit,omitempty"`
	Digits int    `json:"digits"`
	// context for the other figures; neither a high nor a low value is better
	Basis   bool      `json:"basis,omitempty"`
	Plain   []float64 `json:"plain"`
	Quorumd []float64 `json:"quorumd"`
}

func newReport(o options) Report {
	r := Report{
		Version: reportVersion, Time: time.Now().UTC().Truncate(time.Second), Clocks: "shipped",
		Machine: Machine{Cores: runtime.NumCPU(), Arch: runtime.GOARCH, Go: runtime.Version()},
	}
	if o.quick {
		r.Clocks = "quick"
	}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		r.Machine.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	return r
}

// add adds one round of a row to the report.
func (r *Report) add(of row, plain, quorumd values, note string) {
	i := slices.IndexFunc(r.Rows, func(have Result) bool { return have.Row == of.name })
	if i < 0 {
		result := Result{Row: of.name, Plain: of.plainly, Quorumd: of.ours}
		for _, f := range of.figures {
			result.Figures = append(result.Figures, Measured{
				Name: f.name, Unit: f.unit, Digits: f.digits, Basis: f.basis, Plain: []float64{}, Quorumd: []float64{},
			})
		}
		r.Rows, i = append(r.Rows, result), len(r.Rows)
	}
	result := &r.Rows[i]
	if note != "" {
		result.Note = note
	}
	for j := range result.Figures {
		m := &result.Figures[j]
		if v, ok := plain[m.Name]; ok {
			m.Plain = append(m.Plain, v)
		}
		if v, ok := quorumd[m.Name]; ok {
			m.Quorumd = append(m.Quorumd, v)
		}
	}
}

// print prints the report as a table.
func (r *Report) print(out io.Writer) {
	fmt.Fprintf(out, "%s, %d cores, Linux %s on %s, %s, etcd %s; quorumd's times: %s\n\n",
		r.Time.Format(time.DateOnly), r.Machine.Cores, r.Machine.Kernel, r.Machine.Arch, r.Machine.Go, r.Etcd, r.Clocks)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ROW\tFIGURE\tPLAIN\tQUORUMD")
	for _, result := range r.Rows {
		name := result.Row
		for _, m := range result.Figures {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", name, m.Name, m.show(m.Plain), m.show(m.Quorumd))
			name = ""
		}
	}
	_ = table.Flush() // writing to a terminal does not fail, and the reader of a pipe may have exited
	fmt.Fprintln(out)
	for _, result := range r.Rows {
		fmt.Fprintf(out, "%s\n  plain:   %s\n  quorumd: %s\n", result.Row, result.Plain, result.Quorumd)
		if result.Note != "" {
			fmt.Fprintf(out, "  not run: %s\n", result.Note)
		}
	}
}

// show returns the median and, if there are several values and lower ones are better, the worst.
func (m Measured) show(all []float64) string {
	if len(all) == 0 {
		return "–"
	}
	text := m.text(median(all))
	if len(all) > 1 && !m.Basis {
		text += " (worst " + m.number(slices.Max(all)) + ")"
	}
	return text
}

// text formats a value with its unit.
func (m Measured) text(v float64) string { return strings.TrimSpace(m.number(v) + " " + m.Unit) }

func (m Measured) number(v float64) string { return strconv.FormatFloat(v, 'f', m.Digits, 64) }

// median returns the middle value; for an even number of values, the higher of the two middle values.
func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

func (r *Report) write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	return nil
}

// readReport reads what write wrote.
func readReport(path string) (Report, error) {
	file, err := os.Open(path)
	if err != nil {
		return Report{}, fmt.Errorf("cannot compare: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxReport+1))
	if err == nil && len(text) > maxReport {
		err = fmt.Errorf("it is larger than %d bytes", maxReport)
	}
	var r Report
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err == nil && r.Version != reportVersion {
		err = fmt.Errorf("its version is %d, and this bench reads version %d", r.Version, reportVersion)
	}
	if err == nil && len(r.Rows) == 0 {
		err = errors.New("it contains no rows")
	}
	if err != nil {
		return Report{}, fmt.Errorf("cannot compare %s: %w; create it with make bench JSON=FILE", path, err)
	}
	return r, nil
}
