// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// Mute mutes an advisory finding for at most the requested time, and records the mute on this host's disk.
func (o *Operator) Mute(ctx context.Context, req control.MuteRequest, by string) (health.Mute, error) {
	cannot := "cannot mute " + req.Code + ": "
	now, code := o.opt.Wall().UTC(), health.Code(req.Code)
	m := health.Mute{Code: code, Reason: req.Reason, By: by, Since: now, Until: now.Add(time.Duration(req.For))}
	check := o.checkOf(code)
	if err := refused(cannot, policy.AgainstMute(code, check)); err != nil {
		return health.Mute{}, err
	}
	as := o.foundAs(check, code)
	m.State, m.Count, m.Grade = as.State, as.Count, as.Grade
	err := onDisk(ctx, cannot, func() (*policy.Refusal, error) { return o.opt.Files.Mute(m) })
	if err != nil {
		return health.Mute{}, err
	}
	o.note(ctx, "MUTED", fmt.Sprintf("%s muted by %s for %s: %s", code, by, durationfmt.Text(time.Duration(req.For)),
		req.Reason))
	o.opt.Wake()
	return m, nil
}

// Unmute ends a mute early.
func (o *Operator) Unmute(ctx context.Context, code, by string) error {
	was := false
	err := hoststate.Within(ctx, func() (err error) {
		was, err = o.opt.Files.Unmute(health.Code(code))
		return err
	})
	switch {
	case err != nil:
		return refuse(control.NotNow, control.CodeNotSaved, "cannot unmute "+code+": "+err.Error(),
			"check whether paths.state is writable")
	case !was:
		return refuse(control.Conflicts, control.CodeNotMuted, "cannot unmute "+code+": it is not muted",
			"quorumctl health shows the muted findings")
	}
	o.note(ctx, "UNMUTED", code+" unmuted by "+by)
	o.opt.Wake()
	return nil
}

// checkOf returns the check that can report a code, or nil.
func (o *Operator) checkOf(code health.Code) *health.Check {
	i := slices.IndexFunc(o.opt.Checks, func(c health.Check) bool {
		return slices.ContainsFunc(c.Problems, func(p health.Problem) bool { return p.Code == code })
	})
	if i < 0 {
		return nil
	}
	return &o.opt.Checks[i]
}

// foundAs returns the current finding with a code. If there is none, it returns a finding with the mildest state of
// that code.
func (o *Operator) foundAs(c *health.Check, code health.Code) health.Finding {
	if r := o.opt.Rounds.Current(); r != nil {
		for _, f := range r.Assessment.Findings {
			if f.Code == code {
				return f
			}
		}
	}
	lightest := health.Failed
	for _, p := range c.Problems {
		if p.Code == code && lightest.WorseThan(p.State) {
			lightest = p.State
		}
	}
	return health.Finding{State: lightest}
}
