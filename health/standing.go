// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Standing is the state of one check, with or without a finding.
type Standing struct {
	Check string // its name
	State State
	Code  Code          // empty if the state is OK
	Since time.Duration // when the state was entered
	Text  string        // the measurement with its limit
	// NotAvailable is why the check has no reading; empty if it has one.
	NotAvailable string
	// Behind names the check whose finding explains this check's finding, which is then not listed; empty if there is
	// none.
	Behind string
}

// standings returns the state of all checks.
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

// cause returns the name of the check whose finding explains the given finding; empty if there is none.
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

// Effect describes what the findings of a check prevent.
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

// String describes the limit.
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

// value formats a number in the limit's unit.
func (l Limit) value(v float64) string {
	switch {
	case l.Unit == "bytes" && v >= 1<<20:
		return fmt.Sprintf("%.0f MiB", v/(1<<20))
	case l.Unit == "s":
		return show(seconds(v))
	}
	if l.Unit == "×" {
		return fmt.Sprintf("%.3g ×", v)
	}
	return strings.TrimSpace(fmt.Sprintf("%.10g %s", v, l.Unit))
}
