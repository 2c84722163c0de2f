// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/words"
)

// rollout is the document of the rollout commands.
type rollout struct {
	APIVersion string           `json:"apiVersion"`
	Rollout    *control.Rollout `json:"rollout"`
	// as estimated; absent when there is nothing to estimate from
	RemainingSeconds *float64 `json:"remainingSeconds,omitempty"`
}

func rolloutOf(s control.Status) rollout {
	doc := rollout{APIVersion: s.APIVersion, Rollout: s.Rollout}
	if s.Rollout != nil {
		if left, known := remaining(*s.Rollout); known {
			seconds := left.Seconds()
			doc.RemainingSeconds = &seconds
		}
	}
	return doc
}

// remaining estimates how long a rollout that runs still takes: the turn of the middle one of the hosts that are done,
// for each that is not. A turn counts from the end of the one before, so that the pause between two hosts is in it.
func remaining(r control.Rollout) (time.Duration, bool) {
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
	return time.Duration(left) * words.Seconds((took[(n-1)/2]+took[n/2])/2), true
}

// unfinished tells whether there is something to do or to mend.
func unfinished(r control.Rollout) bool {
	return r.State != control.RolloutDone && r.State != control.RolloutAborted
}

// writeRollout writes how far the rollout is, and what becomes of each host.
func writeRollout(p *page, s control.Status) {
	if s.Rollout == nil {
		p.line("there has been no rollout")
		return
	}
	r := *s.Rollout
	p.line("rollout %s: %s%s, %s", word{workNamed(r.Work, r.Command), bold}, rolloutState(r), whose(r), progressOf(r))
	p.line("    reason   %s", r.Reason)
	p.line("    started  %s by %s", words.Since(r.Started, s.Time), r.By)
	if r.Version != "" {
		p.line("    until    etcd reports %s", r.Version)
	}
	if r.Text != "" && whose(r) == "" && r.State != control.RolloutRunning {
		p.line("    because  %s", word{r.Text, rolloutState(r).Tone})
	}
	writeCurrent(p, s)
	p.raw("")
	t := table{head: []string{"HOST", "STATE", "TOOK"}}
	if p.wide {
		t.head = append(t.head, "ID")
	}
	for _, h := range ordered(r.Hosts) {
		row := []word{{h.Name, bold}, hostState(h), {Text: tookOf(h)}}
		if p.wide {
			row = append(row, word{Text: h.ID})
		}
		t.add(row...)
	}
	p.table(t)
	switch r.State {
	case control.RolloutStopped:
		p.line("→ when it is mended: quorumctl rollout resume; to give it up: quorumctl rollout abort")
	case control.RolloutPaused:
		p.line("→ quorumctl rollout resume, or quorumctl rollout abort")
	}
}

// writeCurrent says how far the host is whose turn it is. One that does not come back keeps its turn, and the rollout
// waits.
func writeCurrent(p *page, s control.Status) {
	for _, h := range s.Rollout.Hosts {
		if h.State == control.RolloutHostCurrent && s.Op != nil && s.Op.Host == h.ID {
			p.line("    now      %s, in phase %s, for %s; quorumctl explain says there what it waits for", h.Name,
				s.Op.Phase, words.Span(s.Time.Sub(s.Op.Started)))
		}
	}
}

// ordered gives the hosts as they come: what is done, what is on, what follows.
func ordered(hosts []control.RolloutHost) []control.RolloutHost {
	order := []string{
		control.RolloutHostSkipped, control.RolloutHostDone, control.RolloutHostCurrent,
		control.RolloutHostWaiting,
	}
	list := slices.Clone(hosts)
	slices.SortStableFunc(list, func(a, b control.RolloutHost) int {
		return cmp.Compare(slices.Index(order, a.State), slices.Index(order, b.State))
	})
	return list
}

func rolloutState(r control.Rollout) word {
	switch r.State {
	case control.RolloutDone:
		return word{r.State, good}
	case control.RolloutStopped:
		return word{"STOPPED", bad}
	case control.RolloutPaused, control.RolloutAborted:
		return word{r.State, warn}
	}
	return word{Text: r.State}
}

// whose says who has changed a rollout that a person can change.
func whose(r control.Rollout) string {
	if r.State != control.RolloutPaused && r.State != control.RolloutAborted {
		return ""
	}
	return after(" ", r.Text)
}

func hostState(h control.RolloutHost) word {
	switch h.State {
	case control.RolloutHostDone:
		return word{h.State, good}
	case control.RolloutHostCurrent:
		return word{h.State, warn}
	}
	return word{Text: h.State}
}

func tookOf(h control.RolloutHost) string {
	if h.State != control.RolloutHostDone || h.Seconds == 0 {
		return ""
	}
	return words.Span(words.Seconds(h.Seconds))
}

// progressOf counts the hosts, and says how long the others may take.
func progressOf(r control.Rollout) string {
	done, skipped := 0, 0
	for _, h := range r.Hosts {
		switch h.State {
		case control.RolloutHostDone:
			done++
		case control.RolloutHostSkipped:
			skipped++
		}
	}
	text := fmt.Sprintf("%d of %s", done, words.Count(len(r.Hosts)-skipped, "host", "hosts"))
	if skipped > 0 {
		text += fmt.Sprintf(" and %d skipped", skipped)
	}
	if left, known := remaining(r); known {
		text += fmt.Sprintf(", about %s left", words.Span(left))
	}
	return text
}
