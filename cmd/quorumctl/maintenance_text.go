// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/words"
)

// maintenance is the document of the commands that take this host down.
type maintenance struct {
	APIVersion      string                  `json:"apiVersion"`
	Maintenance     *control.Maintenance    `json:"maintenance"`
	LastMaintenance *control.MaintenanceEnd `json:"lastMaintenance"`
	Op              *control.Op             `json:"op"` // of the cluster
}

func maintenanceOf(s control.Status) maintenance {
	return maintenance{s.APIVersion, s.Maintenance, s.LastMaintenance, s.Op}
}

// writeMaintenance writes all that is known of what takes this host down, and of the cluster's turn.
func writeMaintenance(p *page, s control.Status) {
	m := s.Maintenance
	if m == nil {
		p.line("%s is not in maintenance", word{s.Host.Name, bold})
		writeLast(p, s)
	} else {
		p.line("%s: %s", word{s.Host.Name, bold}, stateOf(*m))
		p.line("    work     %s", workOf(*m))
		p.line("    reason   %s", m.Reason)
		p.line("    asked    %s by %s%s", words.Since(m.Since, s.Time), m.By, after(", for the rollout ", m.Rollout))
		p.line("    until    %s", untilOf(*m, s.Time))
		if len(s.Reasons) > 0 && m.State != control.MaintenanceSafe {
			p.line("[%s] %s", word{s.Reasons[0].Code, warn}, s.Reasons[0].Text)
			do(p, s.Reasons[0].Remedy)
		}
	}
	writeTurn(p, s)
	switch {
	case m == nil || m.State == control.MaintenanceReturning:
	case m.State == control.MaintenanceSafe && m.Work == control.WorkMaintenance:
		p.line("→ when the work is over: quorumctl maintenance off")
	default:
		p.line("→ to withdraw it: quorumctl maintenance off")
	}
}

// writeTurn writes whose turn it is in the cluster.
func writeTurn(p *page, s control.Status) {
	if !s.Cluster.Reachable {
		p.line("cluster: %s", word{"no quorum answers", bad})
	}
	if s.Op == nil {
		p.line("cluster: no operation is in flight")
		return
	}
	writeOp(p, s)
	writeOrphan(p, *s.Op)
	if s.Op.Host != s.Host.ID {
		p.line("    started  %s", words.Since(s.Op.Started, s.Time))
	}
}

func writeLast(p *page, s control.Status) {
	l := s.LastMaintenance
	switch {
	case l == nil:
	case l.Code == control.CodeCycled: // its text would only say so again
		p.line("    last     %s by %s, %s: %s %s", l.Work, l.By, l.Reason, l.Code, words.Since(l.Ended, s.Time))
	default:
		p.line("    last     %s by %s, %s: %s %s, %s", l.Work, l.By, l.Reason, l.Code,
			words.Since(l.Ended, s.Time), l.Text)
	}
}

// writeSafe says that the machine may be touched, and how long.
func writeSafe(p *page, s control.Status) {
	m := *s.Maintenance
	p.line("%s: %s", word{s.Host.Name, bold}, stateOf(m))
	p.line("    until    %s", untilOf(m, s.Time))
	p.line("→ when the work is over: quorumctl maintenance off")
}

// writeEnd says how the newest maintenance ended, and how long it took from the asking.
func writeEnd(p *page, s control.Status) {
	l := s.LastMaintenance
	code, text := word{l.Code, warn}, l.Text
	if l.Code == control.CodeCycled {
		code, text = word{l.Code, good}, "the host is back"
	}
	p.line("%s: %s, %s, %s after it was asked for", word{s.Host.Name, bold}, code, text,
		words.Span(l.Ended.Sub(l.Since)))
}

// stateOf says how far a maintenance is, for people.
func stateOf(m control.Maintenance) word {
	switch m.State {
	case control.MaintenanceWaiting:
		return word{"waits for its turn", warn}
	case control.MaintenanceStopping:
		return word{"is being taken down", warn}
	case control.MaintenanceReturning:
		return word{"is being brought back", warn}
	case control.MaintenanceSafe:
		switch {
		case m.KeepRunning:
			return word{"safe to touch: no other host goes down, and etcd runs on", good}
		case m.Work == control.WorkReboot && m.External:
			return word{"safe to reboot: etcd is stopped", good}
		case m.Work == control.WorkReboot:
			return word{"reboots: etcd is stopped", good}
		}
		return word{"safe to touch: etcd is stopped, and stays so until it is told otherwise", good}
	case control.MaintenanceWorking:
		return word{"runs the command: etcd is stopped", good}
	}
	return word{Text: m.State}
}

func workOf(m control.Maintenance) string {
	switch {
	case m.KeepRunning:
		return m.Work + ", etcd runs on"
	case m.External:
		return m.Work + ", by somebody else"
	}
	return workNamed(m.Work, m.Command)
}

// workNamed is a work, with the name of the command if it is one.
func workNamed(work, command string) string {
	if command == "" {
		return work
	}
	return work + " " + command
}

func untilOf(m control.Maintenance, now time.Time) word {
	switch {
	case m.Until.IsZero():
		return word{Text: "it is done"}
	case m.Overdue || now.After(m.Until):
		return word{fmt.Sprintf("%s: OVERDUE by %s", words.Stamp(m.Until), words.Span(now.Sub(m.Until))), bad}
	}
	return word{Text: fmt.Sprintf("%s (%s left)", words.Stamp(m.Until), words.Span(m.Until.Sub(now)))}
}

// writeAsked writes what an operator has asked for, of this host and of the cluster, in a line each.
func writeAsked(p *page, s control.Status) {
	if m := s.Maintenance; m != nil {
		why := " · by " + m.By + ": " + m.Reason
		if s.Op != nil && s.Op.Kind == cycleOp && s.Op.Host == s.Host.ID {
			why = "" // the line of the operation has said it
		}
		p.line("%s of %s: %s%s%s", word{workNamed(m.Work, m.Command), bold}, s.Host.Name,
			word{m.State, stateOf(*m).Tone}, untilPart(*m, s.Time), why)
	}
	if s.Rollout != nil && unfinished(*s.Rollout) {
		r := *s.Rollout
		stopped := ""
		if r.State == control.RolloutStopped {
			stopped = after(": ", r.Text)
		}
		p.line("rollout %s: %s%s%s, %s · by %s: %s", word{workNamed(r.Work, r.Command), bold}, rolloutState(r),
			whose(r), stopped, progressOf(r), r.By, r.Reason)
	}
}

// untilPart says when a maintenance is to be over, behind a comma, or nothing.
func untilPart(m control.Maintenance, now time.Time) word {
	if m.Until.IsZero() {
		return word{}
	}
	w := untilOf(m, now)
	return word{", until " + w.Text, w.Tone}
}
