// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package display

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/control"
)

// Remaining estimates how long a running rollout still takes: the median time of the finished hosts for each other
// host. A host's time counts from the end of the previous host, so that it includes the pause between them.
func Remaining(r control.Rollout) (time.Duration, bool) {
	var took []float64
	left := 0
	for _, h := range r.Hosts {
		switch h.State {
		case control.RolloutHostDone:
			took = append(took, max(h.Seconds, h.TurnSeconds))
		case control.RolloutHostWaiting, control.RolloutHostCurrent:
			left++
		}
	}
	if r.State != control.RolloutRunning || len(took) == 0 || left == 0 {
		return 0, false
	}
	slices.Sort(took)
	n := len(took)
	return time.Duration(left) * Seconds((took[(n-1)/2]+took[n/2])/2), true
}

// Unfinished reports whether there is something left to do or to fix.
func Unfinished(r control.Rollout) bool {
	return r.State != control.RolloutDone && r.State != control.RolloutAborted
}

// RolloutState returns whether a rollout is running, stopped or done.
func RolloutState(r control.Rollout) Styled {
	switch r.State {
	case control.RolloutDone:
		return Styled{r.State, Good}
	case control.RolloutStopped:
		return Styled{"STOPPED", Bad}
	case control.RolloutPaused, control.RolloutAborted:
		return Styled{r.State, Warn}
	}
	return Styled{Text: r.State}
}

// ChangedBy returns which operator changed a rollout that can be changed.
func ChangedBy(r control.Rollout) string {
	if r.State != control.RolloutPaused && r.State != control.RolloutAborted {
		return ""
	}
	return After(" ", r.Text)
}

// Progress counts the hosts, and estimates how long the others take.
func Progress(r control.Rollout) string {
	done, skipped := 0, 0
	for _, h := range r.Hosts {
		switch h.State {
		case control.RolloutHostDone:
			done++
		case control.RolloutHostSkipped:
			skipped++
		}
	}
	text := fmt.Sprintf("%d of %s", done, Count(len(r.Hosts)-skipped, "host", "hosts"))
	if skipped > 0 {
		text += fmt.Sprintf(" and %d skipped", skipped)
	}
	if left, known := Remaining(r); known {
		text += fmt.Sprintf(", about %s left", Span(left))
	}
	return text
}
