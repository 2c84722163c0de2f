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

// code describes a code of a reason or a finding.
type code struct {
	Code    string `json:"code"`
	Kind    string `json:"kind"`            // "reason", or "problem" for a finding
	State   string `json:"state,omitempty"` // the health state that a finding sets
	Meaning string `json:"meaning"`
	Remedy  string `json:"remedy,omitempty"`
}

// The kinds of codes.
const (
	kindReason  = "reason"
	kindFinding = "problem"
)

func codes() []code {
	var list []code
	for _, e := range journalcatalog.Codes() {
		c := code{Code: e.Code, Kind: kindReason, State: e.State, Meaning: e.Subject, Remedy: e.Remedy}
		if e.State != "" {
			c.Kind = kindFinding
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
	return a.prints(&cobra.Command{
		Use:     "codes",
		GroupID: groupInspect,
		Short:   "List every code with its meaning",
		Long: "List every code that status, logs, metrics and history use. A reason explains why a host does or\n" +
			"does not act; a finding is a condition of the machine and sets a health state. This does not contact\n" +
			"quorumd. For the remedy: quorumctl explain CODE.",
		Example: examples("quorumctl codes", "quorumctl codes | grep DISK", "quorumctl codes -o json"),
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			list := codes()
			return a.emit(list, func(p *page) {
				t := table{head: []string{"CODE", "KIND", "MEANING"}}
				for _, e := range journalcatalog.Codes() {
					kind := kindReason
					if e.State != "" {
						kind = kindFinding
					}
					t.add(cells(e.Code, kind, e.Subject)...)
				}
				p.table(t)
			})
		},
	}, printed{name: "codes", of: []code{}})
}

// codeOf returns the code with that name, in upper or lower case, and reports whether it exists.
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
	if c.Kind == kindFinding {
		p.line("    finding: sets the health state to %s", display.HealthState(c.State))
	}
	if c.Remedy == "" {
		p.line("    → none: it resolves by itself")
		return
	}
	writeRemedy(p, c.Remedy)
}
