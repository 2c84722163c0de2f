// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package journalcatalog_test

import (
	"fmt"
	"io"
	"strings"

	"github.com/quorumd/quorumd/health"
)

const checksHead = `quorumd-checks 7 "" "quorumd" "Miscellaneous Information"
=========================================================

# NAME

quorumd-checks - what quorumd looks at on a machine

# DESCRIPTION

The verdict on a machine is the worst of what its checks find, of those that keep something from happening: a join,
being given the leadership, another voter's maintenance. The others advise only: what they find is listed by
**quorumctl health** and counted in *quorumd_finding*, and the verdict is as if it were not there.

While a vital check has no reading, the verdict is UNKNOWN. Any other that cannot be read is said to be not available,
once, and counts for nothing, unless what it found last was SLOW or worse: then that stays until it can be read again.
Of a check of your own it stays for ten of its intervals only; see **quorumd**(8).

For each check stand its limits, then what it may find, and then the ways from one state to the next with their
conditions and times. A way back takes twice as long for each time that it was gone in the last day, up to 4 h.

# CHECKS

`

const causesHead = `# LIKELY CAUSES

When writes are slow, **quorumctl health** names the likely cause and what was measured that speaks for it. It decides
nothing. The causes are tried in this order, and the first that holds is named. When etcd's own writes are slow and
those of the probe are not, only **processor**, **raid** and **other-writers** are tried, and else the cause is
**etcd** itself.

`

// writeChecks writes the manual page on what quorumd looks at, with the limits of these thresholds.
func writeChecks(w io.Writer, t health.Thresholds) error {
	var page strings.Builder
	page.WriteString(checksHead)
	for _, c := range health.Checks(t) {
		fmt.Fprintf(&page, "**%s**\n: %s; %s. Source: %s.\n", c.Name, c.Component, c.Effect(), c.Source)
		for _, l := range c.Limits {
			bounds := l.String()
			fmt.Fprintf(&page, "%s.\n", strings.ToUpper(bounds[:1])+bounds[1:])
		}
		for _, p := range c.Problems {
			fmt.Fprintf(&page, "*%s* is %s: %s\n", p.Code, p.State, p.Title)
		}
		for _, r := range c.Rules {
			fmt.Fprintf(&page, "From %s to %s: %s.\n", either(r.From), goal(r), r.When)
		}
		page.WriteByte('\n')
	}
	page.WriteString(causesHead)
	for _, a := range health.Attributions() {
		fmt.Fprintf(&page, "**%s**\n: %s.\n\n", a.Cause, a.When)
	}
	page.WriteString("# SEE ALSO\n\n**quorumctl**(1), **quorumd.yaml**(5), **quorumd**(8)\n")
	_, err := io.WriteString(w, page.String())
	return err
}

// either names the states from which a way leads.
func either(states []health.State) string {
	var names []string
	for _, s := range states {
		names = append(names, s.String())
	}
	if n := len(names) - 1; n > 0 {
		return strings.Join(names[:n], ", ") + " or " + names[n]
	}
	return names[0]
}

// goal is where a way leads: the code stands with its state where the state alone does not tell it.
func goal(r health.Rule) string {
	if r.Code == "" {
		return r.To.String()
	}
	return r.To.String() + " *" + string(r.Code) + "*"
}
