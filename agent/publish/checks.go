// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// Checks returns all checks of this machine and their results in the last round. It does not block.
func (p *Publisher) Checks() control.Checks {
	out := control.Checks{Time: p.opt.Wall()}
	r := p.current.Load()
	for _, c := range p.opt.Checks {
		shown := declared(c)
		if r != nil {
			addResult(&shown, r)
		}
		out.Checks = append(out.Checks, shown)
	}
	return out
}

// declared returns a check's definition.
func declared(c health.Check) control.Check {
	out := control.Check{
		Name: c.Name, Component: c.Component, Source: c.Source, Effect: c.Effect(), Vital: c.Vital,
		Gates: c.Gates.Names(), Rules: c.Rules, Runbook: c.Runbook,
	}
	for _, l := range c.Limits {
		out.Limits = append(out.Limits, control.Limit{Limit: l, Text: l.String()})
	}
	for _, p := range c.Problems {
		out.Codes = append(out.Codes, control.Code{Problem: p})
	}
	return out
}

// addResult adds the check's result in a round.
func addResult(c *control.Check, r *round.Round) {
	i := slices.IndexFunc(r.Assessment.Checks, func(s health.Standing) bool { return s.Check == c.Name })
	if i < 0 {
		return
	}
	s := r.Assessment.Checks[i]
	c.State, c.Code, c.Since, c.Text = s.State.String(), s.Code, wallOf(r, s.Since), s.Text
	c.NotAvailable, c.Behind, c.Figures = s.NotAvailable, s.Behind, figuresOf(r, c.Name)
	for _, m := range r.Mutes {
		for i := range c.Codes {
			if c.Codes[i].Code == m.Code {
				c.Codes[i].Muted = &m
			}
		}
	}
}

// wallOf converts a moment on the probe's clock to wall-clock time.
func wallOf(r *round.Round, moment time.Duration) time.Time { return r.Wall.Add(moment - r.Probed) }
