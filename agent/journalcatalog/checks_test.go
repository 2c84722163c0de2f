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

quorumd-checks - the health checks of quorumd

# DESCRIPTION

The health state of a host is the worst finding of all checks that gate something: joins, leadership, or maintenance of
another voter. The other checks only advise: **quorumctl health** lists their findings and *quorumd_finding* counts
them, but they do not change the health state.

While a vital check has no reading, the health state is UNKNOWN. Any other check without a reading is reported once as
not available and ignored. If its last finding was SLOW or worse, that finding stays until the next reading. The finding
of an external check stays for ten of its intervals only; see **quorumd**(8).

Each entry lists the limits of the check, its findings, and the rules for changing the state. The time that a recovery
takes doubles with each recovery in the last 24 hours, up to 4 h.

# CHECKS

`

const causesHead = `# LIKELY CAUSES

When writes are slow, **quorumctl health** names the likely cause and the measurement behind it. The cause has no effect
on the health state. The causes are tried in this order, and the first match is reported. If etcd's own writes are slow
and the probe's are not, only **processor**, **raid** and **other-writers** are tried; otherwise the cause is **etcd**
itself.

`

// writeChecks writes the manual page of quorumd's checks, with these thresholds as limits.
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

// either returns the names of the states from which a transition starts, joined by "or".
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

// goal returns the target state of a transition, with its code if the rule has one.
func goal(r health.Rule) string {
	if r.Code == "" {
		return r.To.String()
	}
	return r.To.String() + " *" + string(r.Code) + "*"
}
