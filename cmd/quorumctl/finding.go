// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/health"
)

// finding is the document that 'quorumctl health CODE' prints.
type finding struct {
	APIVersion string    `json:"apiVersion"`
	Time       time.Time `json:"time"`
	// absent if a check was requested by name and it reports no finding
	Code  *control.Code `json:"code,omitempty"`
	Holds bool          `json:"holds"`
	Check control.Check `json:"check"`
}

// findingNames returns the codes of all findings, for shell completion.
func findingNames() []string {
	var names []string
	for _, c := range codes() {
		if c.Kind == kindFinding {
			names = append(names, c.Code)
		}
	}
	return names
}

// explainFinding shows everything about the finding with that code, or about the check with that name.
func (a *app) explainFinding(ctx context.Context, name string) error {
	all, err := a.client().Checks(ctx)
	if err != nil {
		return cannot("explain "+name, err)
	}
	doc, err := findingOf(all, "explain", name)
	if err != nil {
		return err
	}
	return a.emit(doc, func(p *page) { writeFinding(p, doc) })
}

// findingOf returns the finding with that code, in upper or lower case, or the check with that name. command names the
// command in the error.
func findingOf(all control.Checks, command, name string) (finding, error) {
	doc := finding{APIVersion: all.APIVersion, Time: all.Time}
	var names []string
	for _, c := range all.Checks {
		wanted := string(c.Code)
		if name != c.Name {
			wanted = strings.ToUpper(name)
		}
		for _, k := range c.Codes {
			names = append(names, string(k.Code))
			if string(k.Code) == wanted && (doc.Code == nil || k.State.String() == c.State) {
				doc.Code = &k
			}
		}
		if doc.Code != nil || name == c.Name {
			doc.Check, doc.Holds = c, doc.Code != nil && doc.Code.Code == c.Code
			return doc, nil
		}
		names = append(names, c.Name)
	}
	hint := "list all codes: quorumctl codes"
	if near := config.Nearest(name, names); near != "" {
		hint = "did you mean " + near + "?"
	} else if slices.Contains(codeNames(), strings.ToUpper(name)) {
		hint = "it is a reason, not a finding: quorumctl explain " + strings.ToUpper(name)
	}
	return finding{}, usage(hint, "cannot %s %q: it is neither a finding nor a check", command, name)
}

func writeFinding(p *page, f finding) {
	c := f.Check
	if f.Code != nil {
		p.line("[%s] %s: %s", display.HealthState(f.Code.State.String()), word{string(f.Code.Code), bold}, f.Code.Title)
		p.line("    %s", f.Code.Meaning)
	}
	p.line("%s", currentState(f))
	for _, v := range c.Figures {
		p.line("    %s: %s", v.Label, strings.TrimSpace(display.ThreeDigits(v.Value)+" "+v.Unit))
	}
	if f.Code != nil && f.Code.Muted != nil {
		p.line("%s", display.Mute(*f.Code.Muted, f.Time))
	}
	p.raw("")
	p.line("check: %s, in %s", c.Name, c.Component)
	p.line("measured from: %s", c.Source)
	p.line("effect: %s", c.Effect)
	for _, l := range c.Limits {
		p.line("limit: %s", l.Text)
	}
	for _, r := range c.Rules {
		if f.Code == nil || concerns(r, *f.Code) {
			p.line("%s → %s: %s%s", strings.Join(stateNames(r.From), ", "), ruleTarget(r), r.When, backoffText(r))
		}
	}
	if c.Runbook != "" {
		p.line("runbook: %s in /usr/share/doc/quorumd/prometheus/runbooks.md", c.Runbook)
	}
	if f.Code != nil {
		writeRemedy(p, f.Code.Remedy)
	}
}

// concerns reports whether a rule sets the code or leads out of its state.
func concerns(r health.Rule, k control.Code) bool {
	return r.Code == k.Code || (r.Code == "" || r.Return) && slices.Contains(r.From, k.State)
}

// currentState describes whether the check reports the finding now.
func currentState(f finding) string {
	c := f.Check
	text := display.After(": ", c.Text)
	switch {
	case c.State == "":
		return "now: not checked yet"
	case c.NotAvailable != "" && !f.Holds:
		return "now: the check is not available, so it has no effect: " + c.NotAvailable
	case c.Behind != "":
		return "now: found, but not listed, because the check " + c.Behind + " covers it" + text
	case f.Holds || f.Code == nil && c.Code != "":
		return "now: found, since " + display.Since(c.Since, f.Time) + text
	case c.Code != "":
		return fmt.Sprintf("now: not found; the check reports %s, since %s%s", c.Code,
			display.Since(c.Since, f.Time), text)
	}
	return "now: not found" + text
}

func ruleTarget(r health.Rule) string { return strings.TrimSpace(r.To.String() + " " + string(r.Code)) }

func stateNames(states []health.State) (names []string) {
	for _, s := range states {
		names = append(names, s.String())
	}
	return names
}

// backoffText describes the longer recovery after repeated findings.
func backoffText(r health.Rule) string {
	if r.Return {
		return "; the time doubles with each recovery in the last day"
	}
	return ""
}
