// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/journalcatalog"
)

// code is what quorumctl says of a code without asking anybody.
type code struct {
	Code    string `json:"code"`
	Kind    string `json:"kind"`              // reason or problem
	Verdict string `json:"verdict,omitempty"` // that a problem alone calls for
	Meaning string `json:"meaning"`
	Remedy  string `json:"remedy,omitempty"`
}

// The kinds of codes.
const (
	kindReason  = "reason"
	kindProblem = "problem"
)

func codes() []code {
	var list []code
	for _, e := range journalcatalog.Codes() {
		c := code{Code: e.Code, Kind: kindReason, Verdict: e.State, Meaning: e.Subject, Remedy: e.Remedy}
		if e.State != "" {
			c.Kind = kindProblem
		}
		if e.Text != "" {
			c.Meaning += ". " + e.Text
		}
		list = append(list, c)
	}
	return list
}

func codeNames() []string {
	var names []string
	for _, c := range codes() {
		names = append(names, c.Code)
	}
	return names
}

func (a *app) codesCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "codes",
		GroupID: groupInspect,
		Short:   "List every code with what it means",
		Long: "List every code that stands in status, in the log, in the metrics and in the history, with what " +
			"it\nmeans. " +
			"A reason says why a host does not do more; a problem is one of the machine, and calls\nfor a verdict. " +
			"quorumd is not asked. quorumctl explain CODE says what to do.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			list := codes()
			return a.emit(list, func(p *page) {
				t := table{head: []string{"CODE", "KIND", "MEANS"}}
				for _, e := range journalcatalog.Codes() {
					kind := kindReason
					if e.State != "" {
						kind = kindProblem
					}
					t.add(cells(e.Code, kind, e.Subject)...)
				}
				p.table(t)
			})
		},
	}
}

// codeOf finds a code by its name. People copy codes from a log, where they may stand in lower case.
func codeOf(name string) (code, bool) {
	list := codes()
	i := slices.IndexFunc(list, func(c code) bool { return c.Code == strings.ToUpper(name) })
	if i < 0 {
		return code{}, false
	}
	return list[i], true
}

func writeCode(p *page, c code) {
	style := plain
	if c.Remedy != "" {
		style = warn
	}
	p.line("[%s] %s", word{c.Code, style}, c.Meaning)
	if c.Kind == kindProblem {
		p.line("    a problem of the machine; alone it makes the verdict %s", display.HealthState(c.Verdict))
	} else {
		p.line("    a reason: why a host does what it does, or does no more")
	}
	if c.Remedy == "" {
		p.line("    → nothing, but to wait")
		return
	}
	do(p, c.Remedy)
}
