// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quorumd/quorumd/health"
)

// Row is a fault and how quorumd detected it.
type Row struct {
	Fault string `json:"fault"`
	How   string `json:"how"` // how it was injected
	// Recorded marks a fault without a faulty device: the test gave quorumd a recorded response.
	Recorded bool `json:"recorded,omitempty"`
	// Seconds is the time from the fault until quorumctl shows the finding or, without a Code, how long the test
	// watched.
	Seconds float64 `json:"seconds"`
	// State is the host's health state, and Finding the state that this finding alone would cause.
	State   string `json:"state"`
	Finding string `json:"finding,omitempty"`
	Code    string `json:"code,omitempty"` // code of the finding; empty if none was expected
	Text    string `json:"text"`
	Cause   string `json:"cause,omitempty"` // likely cause and the evidence for it
}

// component is a component into which tests inject faults, and the file with its rows.
type component struct{ name, title, about string }

func components() []component {
	return []component{
		{"disk", "Disk", "An in-memory FUSE file system (contrib/faultfs) injects the faults on a host without a " +
			"member. Its qualifying run is shortened, unless the host is about to join. Each fault begins after " +
			"the probe has slowed down to its normal rate."},
		{"network", "Network", "Three voters with real etcd, each in its own network namespace, as reported by n1."},
		{"machine", "Machine", "A virtual machine with its own drives and kernel (`make vm`). It is emulated and " +
			"short of CPU time, so its limits are wider, 200 ms for a slow write and 3 s for a hanging one, and a " +
			"health state covers only 100 samples."},
		{"link", "Network interface", "A host in its own network namespace, on one end of a veth pair."},
		{"processor", "CPU", "A host on this machine with a healthy disk and the default limit."},
		{"host", "Certificates", "A host on this machine with a healthy disk."},
	}
}

const rowsDir = "rows"

func rowsFile(dir, name string) string { return filepath.Join(dir, rowsDir, name+".json") }

// load reads the rows of a component.
func load(dir, name string) ([]Row, error) {
	text, err := os.ReadFile(rowsFile(dir, name))
	if err != nil {
		return nil, fmt.Errorf("cannot read the rows of %s: %w; make them with `make fault-table`", name, err)
	}
	var rows []Row
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, fmt.Errorf("cannot read the rows of %s: %w; make them with `make fault-table`", name, err)
	}
	return rows, nil
}

const intro = `# Fault table: how quorumd detects each fault

` + "`make fault-table` and `make vm`" + ` injected these faults on one machine, into the shipped programs with
default limits unless a section states others. *After* is the time until ` + "`quorumctl health`" + ` showed the
finding. *nothing* means that no finding is expected, and none appeared for that time. A finding that only advises
does not change the health state; the table shows both.
`

// document renders the tables of all components.
func document(dir string) (string, error) {
	var b strings.Builder
	b.WriteString(intro)
	var all []Row
	for _, p := range components() {
		rows, err := load(dir, p.name)
		if err != nil {
			return "", err
		}
		all = append(all, rows...)
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", p.title, p.about)
		b.WriteString("| Fault | Injected with | After | Health state | Code | Message |\n|---|---|---|---|---|---|\n")
		for _, r := range rows {
			b.WriteString(r.line())
		}
	}
	b.WriteString(unprovoked)
	for _, c := range health.Checks(health.DefaultThresholds()) {
		if codes := missingCodes(c, all); len(codes) > 0 {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", c.Component, strings.Join(codes, ", "), c.Source)
		}
	}
	return b.String(), nil
}

const unprovoked = `
## Codes without a row

No fault above has these codes. Unit tests in ` + "`health`" + ` cover every rule that leads to one, over series of
values. These values come from recorded kernel files and responses, and those of etcd from a real etcd.

| Component | Code | Source |
|---|---|---|
`

// missingCodes returns the codes of a check that appear in no row.
func missingCodes(c health.Check, rows []Row) (codes []string) {
	for _, p := range c.Problems {
		if !slices.ContainsFunc(rows, func(r Row) bool { return r.Code == string(p.Code) }) {
			codes = append(codes, string(p.Code))
		}
	}
	return slices.Compact(codes)
}

func (r Row) line() string {
	state, code, text, how := r.State, "*nothing*", r.Text, r.How
	if r.Code != "" {
		code = r.Code
	}
	if r.Finding != "" && r.Finding != r.State {
		state += ", advises " + r.Finding
	}
	if r.Cause != "" {
		text += "; likely cause: " + r.Cause
	}
	if r.Recorded {
		how = "recorded: " + how
	}
	cells := []string{r.Fault, how, fmt.Sprintf("%.1f s", r.Seconds), state, code, text}
	for i := range cells {
		cells[i] = strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(cells[i])
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}
