// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/local"
	"github.com/quorumd/quorumd/agent/span"
	"github.com/quorumd/quorumd/health"
)

// Mute notes on this host's disk that a finding which only advises need not be told for a while.
func (o *Operator) Mute(ctx context.Context, req control.MuteRequest, by string) (control.Mute, error) {
	const cannot = "cannot mute "
	now, code := o.opt.Wall().UTC(), health.Code(req.Code)
	m := health.Mute{Code: code, Reason: req.Reason, By: by, Since: now, Until: now.Add(req.For)}
	check, known := o.checkOf(code)
	switch {
	case !known:
		return control.Mute{}, refuse(control.Wrong, control.CodeBadRequest, cannot+req.Code+": no check finds that",
			"quorumctl health shows what is found")
	case check.Gates != health.Nothing:
		return control.Mute{}, refuse(control.Conflicts, control.CodeConflict, fmt.Sprintf(
			"cannot mute %s: it %s, and what keeps a step from happening is never muted", code, check.Effect()),
			"quorumctl health "+req.Code+" says what to do about it")
	}
	as := o.foundAs(check, code)
	m.State, m.Count, m.Grade = as.State, as.Count, as.Grade
	err := local.Within(ctx, func() error { return o.opt.Files.Mute(m) })
	switch {
	case errors.Is(err, local.ErrTooManyMutes):
		return control.Mute{}, refuse(control.Conflicts, control.CodeConflict,
			fmt.Sprintf("%s%s: %d are muted already, and no more may be", cannot, code, local.MaxMutes),
			"quorumctl health unmute ends one")
	case err != nil:
		return control.Mute{}, refuse(control.NotNow, control.CodeNotNoted, cannot+req.Code+": "+err.Error(),
			"see whether paths.state can be written")
	}
	o.note(ctx, "MUTED", fmt.Sprintf("%s muted by %s for %s: %s", code, by, span.Text(req.For), req.Reason))
	o.opt.Wake()
	return control.Mute{
		Code: req.Code, State: m.State.String(), Reason: m.Reason, By: by, Since: m.Since, Until: m.Until,
	}, nil
}

// Unmute forgets a mute before its time.
func (o *Operator) Unmute(ctx context.Context, code, by string) error {
	was := false
	err := local.Within(ctx, func() (err error) {
		was, err = o.opt.Files.Unmute(health.Code(code))
		return err
	})
	switch {
	case err != nil:
		return refuse(control.NotNow, control.CodeNotNoted, "cannot unmute "+code+": "+err.Error(),
			"see whether paths.state can be written")
	case !was:
		return refuse(control.Conflicts, control.CodeNotMuted, "cannot unmute "+code+": it is not muted",
			"quorumctl health shows what is")
	}
	o.note(ctx, "UNMUTED", code+" unmuted by "+by)
	o.opt.Wake()
	return nil
}

// checkOf gives the check that may find a code.
func (o *Operator) checkOf(code health.Code) (health.Check, bool) {
	i := slices.IndexFunc(o.opt.Checks, func(c health.Check) bool {
		return slices.ContainsFunc(c.Problems, func(p health.Problem) bool { return p.Code == code })
	})
	if i < 0 {
		return health.Check{}, false
	}
	return o.opt.Checks[i], true
}

// foundAs gives a finding as it is now; while it is not found, with the lightest state that it may have.
func (o *Operator) foundAs(c health.Check, code health.Code) health.Finding {
	if r := o.opt.Rounds.Current(); r != nil {
		for _, f := range r.Verdict.Findings {
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
