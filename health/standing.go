// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Standing is where one check stands, whether or not it has found anything.
type Standing struct {
	Check string // its name
	State State
	Code  Code          // empty when the state is OK
	Since time.Duration // the moment the state was entered
	Text  string        // what was measured, against its limit
	// NotAvailable says why there is nothing to judge by; empty when there is.
	NotAvailable string
	// Behind names the check that is the cause: what this one finds is then not listed.
	Behind string
}

// standings tells where all checks stand.
func (j *Judge) standings() []Standing {
	all := make([]Standing, 0, len(j.checks))
	for _, c := range j.checks {
		s := Standing{
			Check: c.Name, State: c.State, Code: c.Code, Since: c.Since, NotAvailable: c.absent(),
		}
		if f, wrong := c.finding(); wrong {
			s.Text = f.Text
			s.Behind = j.cause(c, f)
		} else if s.NotAvailable == "" {
			s.Text = c.text()
		}
		all = append(all, s)
	}
	return all
}

// cause names the check which says already what this one has found; empty when none does.
func (j *Judge) cause(of *check, found Finding) string {
	for _, c := range j.checks {
		if !slices.Contains(of.Behind, c.Name) {
			continue
		}
		if f, holds := c.finding(); holds && !found.State.WorseThan(f.State) && f.Gates.covers(found.Gates) {
			return c.Name
		}
	}
	return ""
}

// Effect returns what the findings of a check do.
func (c Check) Effect() string {
	what := strings.Join(c.Gates.Names(), ", ")
	switch {
	case what == "":
		return "advises only"
	case c.Vital:
		return "vital; gates " + what
	}
	return "gates " + what
}

// String returns where the limit lies.
func (l Limit) String() string {
	sense, well := "over", "less"
	if l.Below {
		sense, well = "below", "more"
	}
	switch {
	case l.Enter == l.Leave:
		return fmt.Sprintf("%s: bad %s %s", l.Of, sense, l.value(l.Enter))
	case l.Leave < 0:
		return fmt.Sprintf("%s: bad %s %s, good again %s below that", l.Of, sense, l.value(l.Enter), l.value(-l.Leave))
	}
	return fmt.Sprintf("%s: bad %s %s, good again at %s or %s", l.Of, sense, l.value(l.Enter), l.value(l.Leave), well)
}

// value writes a number in the limit's unit.
func (l Limit) value(v float64) string {
	switch {
	case l.Unit == "bytes" && v >= 1<<20:
		return fmt.Sprintf("%.0f MiB", v/(1<<20))
	case l.Unit == "s":
		return show(seconds(v))
	}
	return fmt.Sprintf("%.10g %s", v, l.Unit)
}
