// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"slices"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// rollout is the document that 'quorumctl rollout', 'readdress', 'defrag' and 'upgrade' print.
type rollout struct {
	APIVersion string           `json:"apiVersion"`
	Rollout    *control.Rollout `json:"rollout"`
	// estimated; absent without data for an estimate
	RemainingSeconds *float64 `json:"remainingSeconds,omitempty"`
}

func rolloutOf(s control.Status) rollout {
	doc := rollout{APIVersion: s.APIVersion, Rollout: s.Rollout}
	if s.Rollout != nil {
		if left, known := display.Remaining(*s.Rollout); known {
			seconds := left.Seconds()
			doc.RemainingSeconds = &seconds
		}
	}
	return doc
}

// writeRollout shows the progress of the rollout and the state of each host.
func writeRollout(p *page, s control.Status) {
	if s.Rollout == nil {
		p.line("there has been no rollout")
		return
	}
	r := *s.Rollout
	p.line("rollout %s: %s%s, %s", word{display.Work(r.Work, r.Command), bold}, display.RolloutState(r),
		display.ChangedBy(r), display.Progress(r))
	p.line("    reason   %s", r.Reason)
	p.line("    started  %s by %s", display.Since(r.Started, s.Time), r.By)
	if r.Version != "" {
		p.line("    until    etcd reports %s", r.Version)
	}
	if r.Hold {
		p.line("    pauses   before the last member with an older etcd")
	}
	if r.Text != "" && display.ChangedBy(r) == "" && r.State != record.RolloutRunning {
		p.line("    because  %s", word{r.Text, display.RolloutState(r).Tone})
	}
	writeCurrent(p, s)
	p.raw("")
	t := table{head: []string{"HOST", "STATE", "TOOK"}}
	if p.wide {
		t.head = append(t.head, "ID")
	}
	for _, h := range byState(r.Hosts) {
		row := []word{{h.Name, bold}, hostState(h), {Text: tookOf(h)}}
		if p.wide {
			row = append(row, word{Text: h.ID})
		}
		t.add(row...)
	}
	p.table(t)
	switch {
	case r.State == record.RolloutStopped:
		p.line("→ after fixing the cause: quorumctl rollout resume; to end the rollout: quorumctl rollout abort")
	case r.State == record.RolloutPaused && r.Work == policy.WorkCommand && r.Version != "":
		p.line("→ quorumctl upgrade resume; or, to roll it back: " +
			"quorumctl upgrade abort --command NAME --reason '<why>'")
	case r.State == record.RolloutPaused:
		p.line("→ quorumctl rollout resume, or quorumctl rollout abort")
	}
}

// writeCurrent shows the phase of the current host.
func writeCurrent(p *page, s control.Status) {
	for _, h := range s.Rollout.Hosts {
		if h.State == control.RolloutHostCurrent && s.Op != nil && s.Op.Host == h.ID {
			p.line("    now      %s for %s, in phase %s; quorumctl explain on %s shows what it waits for", h.Name,
				display.Span(s.Time.Sub(s.Op.Started)), s.Op.Phase, h.Name)
		}
	}
}

// byState returns the hosts in the order skipped, done, current, waiting.
func byState(hosts []control.RolloutHost) []control.RolloutHost {
	order := []string{
		record.HostSkipped, record.HostDone, control.RolloutHostCurrent,
		record.HostWaiting,
	}
	list := slices.Clone(hosts)
	slices.SortStableFunc(list, func(a, b control.RolloutHost) int {
		return cmp.Compare(slices.Index(order, a.State), slices.Index(order, b.State))
	})
	return list
}

func hostState(h control.RolloutHost) word {
	switch h.State {
	case record.HostDone:
		return word{h.State, good}
	case control.RolloutHostCurrent:
		return word{h.State, warn}
	}
	return word{Text: h.State}
}

func tookOf(h control.RolloutHost) string {
	if h.State != record.HostDone || h.Seconds == 0 {
		return ""
	}
	return display.Span(display.Seconds(h.Seconds))
}
