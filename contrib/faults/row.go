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

// Row is a fault and what quorumd made of it.
type Row struct {
	Fault string `json:"fault"`
	How   string `json:"how"` // it was provoked
	// Recorded says that no device was at fault: quorumd was given what one has said.
	Recorded bool `json:"recorded,omitempty"`
	// Seconds from the fault until quorumctl shows it. Without a Code, for how long it was looked for.
	Seconds float64 `json:"seconds"`
	// Verdict is that on the machine, and Finding what this finding alone calls for: it may advise only.
	Verdict string `json:"verdict"`
	Finding string `json:"finding,omitempty"`
	Code    string `json:"code,omitempty"` // empty when nothing was found, as it should be
	Text    string `json:"text"`
	Cause   string `json:"cause,omitempty"` // with why
}

// place is where harm is done, and the file of its rows.
type place struct{ name, title, about string }

func places() []place {
	return []place{
		{"disk", "The disk", "A file system of FUSE that misbehaves on request (contrib/faultfs), over memory, on a " +
			"host without a member. Its qualifying run is short, but for the host that wants to join, and the fault " +
			"begins when the probe writes as seldom as in service."},
		{"network", "The network", "Three voters with a real etcd, each in a network of its own; n1 tells."},
		{"machine", "The machine", "A virtual machine with drives and a kernel of its own (`make vm`). It is " +
			"emulated: a write may take 200 ms there and hang for 3 s, a verdict looks back on 100 samples, and the " +
			"processor is short beside what it has to do."},
		{"link", "The link", "A host in a network of its own, at the end of a cable."},
		{"processor", "The processor", "A host of this machine, on a disk that is well; the limit is as shipped."},
		{"host", "The host", "A host of this machine, on a disk that is well."},
	}
}

const rowsDir = "rows"

func rowsFile(dir, name string) string { return filepath.Join(dir, rowsDir, name+".json") }

// load reads the rows of a place.
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

const intro = `# Faults, and what quorumd makes of them

Made by ` + "`make fault-table` and `make vm`" + ` on one machine, by quorumd as it is built and with its own limits.
Each fault was provoked, and the time taken until ` + "`quorumctl health`" + ` showed it. *nothing* is what should be
found: it was looked for as long as the row says. What advises only leaves the verdict as it is, which stands before it.
`

// document gives the table of all places.
func document(dir string) (string, error) {
	var b strings.Builder
	b.WriteString(intro)
	var all []Row
	for _, p := range places() {
		rows, err := load(dir, p.name)
		if err != nil {
			return "", err
		}
		all = append(all, rows...)
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", p.title, p.about)
		b.WriteString("| Fault | Provoked by | After | Verdict | Code | What is shown |\n|---|---|---|---|---|---|\n")
		for _, r := range rows {
			b.WriteString(r.line())
		}
	}
	b.WriteString(unprovoked)
	for _, c := range health.Checks(health.DefaultThresholds()) {
		if codes := unseen(c, all); len(codes) > 0 {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", c.Component, strings.Join(codes, ", "), c.Source)
		}
	}
	return b.String(), nil
}

const unprovoked = `
## Not provoked here

No row above has these codes. Every rule that leads to one is walked in tests, over series of numbers (health). What
it reads is read in tests from files as the kernel writes them and from answers that were recorded, and what etcd tells
from a real etcd.

| Of the | Code | Read from |
|---|---|---|
`

// unseen gives the codes of a check that no row has.
func unseen(c health.Check, rows []Row) (codes []string) {
	for _, p := range c.Problems {
		if !slices.ContainsFunc(rows, func(r Row) bool { return r.Code == string(p.Code) }) {
			codes = append(codes, string(p.Code))
		}
	}
	return slices.Compact(codes)
}

func (r Row) line() string {
	verdict, code, text, how := r.Verdict, "*nothing*", r.Text, r.How
	if r.Code != "" {
		code = r.Code
	}
	if r.Finding != "" && r.Finding != r.Verdict {
		verdict += ", advises " + r.Finding
	}
	if r.Cause != "" {
		text += "; likely cause: " + r.Cause
	}
	if r.Recorded {
		how = "recorded: " + how
	}
	cells := []string{r.Fault, how, fmt.Sprintf("%.1f s", r.Seconds), verdict, code, text}
	for i := range cells {
		cells[i] = strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(cells[i])
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}
