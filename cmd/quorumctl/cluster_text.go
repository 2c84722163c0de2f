// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/policy"
)

// writeSize shows the size of the cluster, who set it, and the steps that are left.
func writeSize(p *page, r control.Resize) {
	p.line("%s, %s", word{display.Count(r.Voters, "voter", "voters"), bold}, toleranceWord(r.FaultTolerance))
	if r.Size == nil {
		p.line("    size     %d, as configured", r.Target)
	} else {
		p.line("    size     %d, resized by %s%s", r.Target, r.Size.By, display.After(": ", r.Size.Reason))
		p.line("    since    %s", display.Timestamp(r.Size.Since))
	}
	if r.Configured != r.Target {
		p.line("    config   cluster.voters is %d on this host", r.Configured)
	}
	writeSteps(p, r.Steps, r.Warnings)
}

// writeResizePlan shows what resizing the cluster does, or would do.
func writeResizePlan(p *page, r control.Resize) {
	switch {
	case r.Unchanged && len(r.Steps) == 0:
		p.line("nothing to do: the cluster already has %s", display.Count(r.Voters, "voter", "voters"))
		return
	case r.Unchanged:
		p.line("nothing to record: the cluster has been resized to %d by %s%s", r.Target, r.Size.By,
			display.After(": ", r.Size.Reason))
	case r.Voters == r.Target:
		p.line("%s the size %s; the cluster already has that many voters", would(r.DryRun, "record", "recorded"),
			word{fmt.Sprint(r.Target), bold})
	default:
		p.line("%s the cluster from %d to %s", would(r.DryRun, "resize", "resizing"), r.Voters,
			word{display.Count(r.Target, "voter", "voters"), bold})
	}
	if r.Size != nil && r.Size.Reason != "" && !r.Unchanged {
		p.line("    reason   %s", r.Size.Reason)
	}
	writeSteps(p, r.Steps, r.Warnings)
}

// would returns "would " and do for a dry run, otherwise done.
func would(dryRun bool, do, done string) string {
	if dryRun {
		return "would " + do
	}
	return done
}

// writeSteps shows numbered steps with the fault tolerance after each, the point of no return, and the warnings.
func writeSteps(p *page, steps []policy.PlanStep, warnings []string) {
	final := false
	for i, step := range steps {
		if step.Final && !final {
			final = true
			p.line("  -- point of no return: a voter that has left does not come back as the same member --")
		}
		p.labelled(fmt.Sprintf("  %d. ", i+1), display.Line{{Text: step.Text}})
		p.line("     then %s, %s", display.Count(step.Voters, "voter", "voters"), toleranceWord(step.Tolerance))
		if step.WaitsFor != "" {
			p.labelled("     waits: ", display.Line{{Text: step.WaitsFor, Tone: warn}})
		}
	}
	for _, text := range warnings {
		p.labelled("WARNING: ", display.Line{{Text: text, Tone: bad}})
	}
}

func toleranceWord(n int) word {
	w := word{Text: fmt.Sprintf("fault tolerance %d", n)}
	if n < 1 {
		w.Tone = bad
	}
	return w
}
