// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestEveryProblemIsDeclaredInFull(t *testing.T) {
	t.Parallel()
	seen := map[Code]bool{}
	for _, p := range Problems() {
		if seen[p.Code] {
			t.Errorf("%s is declared twice", p.Code)
		}
		seen[p.Code] = true
		if !strings.HasSuffix(p.Title, ".") || strings.Count(p.Title, ".") != 1 {
			t.Errorf("the title of %s is not one sentence: %q", p.Code, p.Title)
		}
		if p.Component == "" || p.Meaning == "" || p.Remedy == "" || p.State == OK {
			t.Errorf("%s is not declared in full: %+v", p.Code, p)
		}
		if got, known := p.Code.Problem(); !known || got != p {
			t.Errorf("%s leads to %+v", p.Code, got)
		}
	}
	if !slices.IsSortedFunc(Problems(), func(a, b Problem) int { return b.State.weight() - a.State.weight() }) {
		t.Error("the worst are not first")
	}
	if _, known := Code("NONSENSE").Problem(); known {
		t.Error("an undeclared code is known")
	}
}

func TestEveryCodeHasARuleAndEveryRuleLeadsToItsCodesState(t *testing.T) {
	t.Parallel()
	j, err := New(DefaultThresholds())
	if err != nil {
		t.Fatal(err)
	}
	reached := map[Code]bool{}
	for _, r := range j.Rules() {
		if r.To == OK {
			if r.Code != "" {
				t.Errorf("a rule to OK has the code %s", r.Code)
			}
			continue
		}
		p, known := r.Code.Problem()
		if !known || p.State != r.To || p.Component != r.Component {
			t.Errorf("a %s rule to %s has the code %q, declared as %+v", r.Component, r.To, r.Code, p)
		}
		reached[r.Code] = true
	}
	for _, c := range j.checks { // a snapshot may contain only a state to which a rule leads
		if !slices.ContainsFunc(c.rules, func(r rule) bool { return r.to == c.start && r.code == c.startCode }) {
			t.Errorf("%s starts as %s %q, where no rule leads", c.Name, c.start, c.startCode)
		}
	}
	for _, p := range Problems() {
		if !reached[p.Code] {
			t.Errorf("no rule leads to %s", p.Code)
		}
	}
}

func TestTheRulesMatchTheGoldenFile(t *testing.T) {
	t.Parallel()
	j, err := New(DefaultThresholds())
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	for _, r := range j.Rules() {
		var from []string
		for _, s := range r.From {
			from = append(from, s.String())
		}
		again := ""
		if r.Return {
			again = " (each return doubles the time)"
		}
		fmt.Fprintf(&page, "%s: %s -> %s %s\n    when %s%s\n", r.Component, strings.Join(from, "|"), r.To, r.Code,
			r.When, again)
	}
	golden(t, "testdata/rules.golden", page.String())
}
