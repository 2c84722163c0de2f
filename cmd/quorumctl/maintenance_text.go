// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/policy"
)

// maintenance is the document that 'quorumctl maintenance' and 'quorumctl cycle' print.
type maintenance struct {
	APIVersion      string                  `json:"apiVersion"`
	Maintenance     *control.Maintenance    `json:"maintenance"`
	LastMaintenance *control.MaintenanceEnd `json:"lastMaintenance"`
	Op              *control.Op             `json:"operation"` // the cluster's current operation
}

func maintenanceOf(s control.Status) maintenance {
	return maintenance{s.APIVersion, s.Maintenance, s.LastMaintenance, s.Op}
}

// writeMaintenance shows the maintenance of this host, and the cluster's current operation.
func writeMaintenance(p *page, s control.Status) {
	m := s.Maintenance
	if m == nil {
		p.line("%s is not in maintenance", word{s.Host.Name, bold})
		writeLast(p, s)
	} else {
		p.line("%s: %s", word{s.Host.Name, bold}, display.MaintenanceState(*m))
		p.line("    work     %s", workOf(*m))
		p.line("    reason   %s", m.Reason)
		p.line("    since    %s by %s%s", display.Since(m.Since, s.Time), m.By,
			display.After(", for the rollout ", m.Rollout))
		p.line("    until    %s", display.Until(*m, s.Time))
		if m.Recalled != "" {
			p.line("    recalled %s", word{m.Recalled, warn})
		}
		if len(s.Reasons) > 0 && m.State != policy.RequestSafe {
			p.line("[%s] %s", word{s.Reasons[0].Code, warn}, s.Reasons[0].Text)
			writeRemedy(p, s.Reasons[0].Remedy)
		}
	}
	writeCurrentOperation(p, s)
	switch {
	case m == nil || m.State == policy.RequestReturning:
	case m.State == policy.RequestSafe && m.Work == policy.WorkMaintenance:
		p.line("→ when the work is over: quorumctl maintenance off")
	default:
		p.line("→ to cancel it: quorumctl maintenance off")
	}
}

func writeCurrentOperation(p *page, s control.Status) {
	if !s.Cluster.Reachable {
		p.line("cluster: %s", word{"no quorum", bad})
	}
	if s.Op == nil {
		p.line("cluster: no operation in progress")
		return
	}
	writeLines(p, display.Operation(*s.Op, s.Time))
	writeLines(p, display.Orphaned(*s.Op)...)
	if s.Op.Host != s.Host.ID {
		p.line("    started  %s", display.Since(s.Op.Started, s.Time))
	}
}

func writeLast(p *page, s control.Status) {
	l := s.LastMaintenance
	switch {
	case l == nil:
	case l.Code == policy.Cycled: // the text would only repeat the code
		p.line("    last     %s by %s, %s: %s %s", l.Work, l.By, l.Reason, l.Code, display.Since(l.Ended, s.Time))
	default:
		p.line("    last     %s by %s, %s: %s %s, %s", l.Work, l.By, l.Reason, l.Code,
			display.Since(l.Ended, s.Time), l.Text)
	}
}

// writeSafe shows that the machine is safe to work on, and when the maintenance should end.
func writeSafe(p *page, s control.Status) {
	m := *s.Maintenance
	p.line("%s: %s", word{s.Host.Name, bold}, display.MaintenanceState(m))
	p.line("    until    %s", display.Until(m, s.Time))
	p.line("→ when the work is over: quorumctl maintenance off")
}

// writeEnd shows how the last maintenance ended, and its duration since the request.
func writeEnd(p *page, s control.Status) {
	l := s.LastMaintenance
	code, text := word{string(l.Code), warn}, l.Text
	if l.Code == policy.Cycled {
		code, text = word{string(l.Code), good}, "the host is back"
	}
	if l.Code == policy.Recalled {
		text = "the host was brought back because the cluster needed its vote (" + l.Text + ")"
	}
	p.line("%s: %s, %s, %s after the request", word{s.Host.Name, bold}, code, text,
		display.Span(l.Ended.Sub(l.Since)))
}

func workOf(m control.Maintenance) string {
	switch {
	case m.KeepRunning:
		return string(m.Work) + ", etcd keeps running"
	case m.Interruptible:
		return string(m.Work) + ", interruptible: quorumd ends it if the cluster needs this host"
	case m.External:
		return string(m.Work) + ", started outside quorumd"
	}
	return display.Work(m.Work, m.Command)
}
