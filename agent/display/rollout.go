// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package display

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/record"
)

// Remaining estimates how much longer a running rollout takes: the median time of the finished hosts, multiplied by the
// number of hosts left. A host's time starts when the previous host ends, so it includes the pause between the two
// hosts.
func Remaining(r control.Rollout) (time.Duration, bool) {
	var took []float64
	left := 0
	for _, h := range r.Hosts {
		switch h.State {
		case record.HostDone:
			took = append(took, max(h.Seconds, h.TurnSeconds))
		case record.HostWaiting, control.RolloutHostCurrent:
			left++
		}
	}
	if r.State != record.RolloutRunning || len(took) == 0 || left == 0 {
		return 0, false
	}
	slices.Sort(took)
	n := len(took)
	return time.Duration(left) * Seconds((took[(n-1)/2]+took[n/2])/2), true
}

// Unfinished reports whether a rollout is neither done nor aborted.
func Unfinished(r control.Rollout) bool {
	return r.State != record.RolloutDone && r.State != record.RolloutAborted
}

// RolloutState returns the state of a rollout, styled.
func RolloutState(r control.Rollout) Styled {
	switch r.State {
	case record.RolloutDone:
		return Styled{r.State, Good}
	case record.RolloutStopped:
		return Styled{"STOPPED", Bad}
	case record.RolloutPaused, record.RolloutAborted:
		return Styled{r.State, Warn}
	}
	return Styled{Text: r.State}
}

// ChangedBy returns who paused or aborted a rollout, or why, after a space; "" in any other state.
func ChangedBy(r control.Rollout) string {
	if r.State != record.RolloutPaused && r.State != record.RolloutAborted {
		return ""
	}
	return After(" ", r.Text)
}

// Progress returns how many hosts are done and skipped, and the estimated time left.
func Progress(r control.Rollout) string {
	done, skipped := 0, 0
	for _, h := range r.Hosts {
		switch h.State {
		case record.HostDone:
			done++
		case record.HostSkipped:
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
