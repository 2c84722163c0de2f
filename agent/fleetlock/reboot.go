// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package fleetlock

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

const (
	byPrefix     = "fleetlock: " // prefix of the requester's name, before the client's ID
	pollInterval = 100 * time.Millisecond
	// missingGrace is how long an accepted request may be missing from the status before it counts as cancelled.
	missingGrace = 10 * time.Second
	// alertAfter is how long the maintenance for a reboot may take before an alert fires.
	alertAfter = time.Hour
)

// preReboot requests the maintenance, waits until the client may reboot this machine, and then returns nil. It returns
// a refusal if ctx ends first, or if the request fails, is cancelled, or conflicts with other work.
func (s *Server) preReboot(ctx context.Context, c client) *refusal {
	by := byPrefix + c.ID
	m, err := s.opt.Host.RequestMaintenance(ctx, control.MaintenanceRequest{
		Work: policy.WorkReboot, Reason: "a reboot agent of group " + c.Group + " requested it",
		For: control.Duration(alertAfter), External: true,
	}, by)
	if err != nil {
		return refusalOf(err)
	}
	missing := time.Now()
	for {
		switch {
		case m.By != by && strings.HasPrefix(m.By, byPrefix):
			return refuse(http.StatusConflict, kindOtherClient,
				"cannot let %q reboot this machine: %q requested it first; "+
					"quorumd answers only for its own host", c.ID, strings.TrimPrefix(m.By, byPrefix))
		case m.Work != policy.WorkReboot || !m.External:
			return refuse(http.StatusConflict, kindOther,
				"cannot allow the reboot: other work on this host (%s) was requested by %s: %s", m.Work, m.By,
				m.Reason)
		case m.State == policy.RequestSafe:
			return nil
		}
		if !pause(ctx) {
			return s.notYet(kindWaiting, "this host cannot reboot yet")
		}
		if now := s.opt.Host.Status().Maintenance; now != nil {
			m, missing = *now, time.Now()
		} else if time.Since(missing) > missingGrace {
			return refuse(http.StatusConflict, kindWithdrawn,
				"cannot allow the reboot: the request was cancelled; retry")
		}
	}
}

// steadyState ends the client's maintenance, waits until this host is back, and then returns nil. Without a request by
// a reboot agent, it returns nil as soon as the status is complete.
func (s *Server) steadyState(ctx context.Context, c client) *refusal {
	by := byPrefix + c.ID
	ended := false
	for {
		status := s.opt.Host.Status()
		m := status.Maintenance
		switch {
		case status.Loop.Rounds == 0: // quorumd has just started, and its status is not complete
		case m == nil || !strings.HasPrefix(m.By, byPrefix):
			return nil
		case m.By != by:
			return refuse(http.StatusConflict, kindOtherClient, "cannot end the reboot for %q: %q requested it", c.ID,
				strings.TrimPrefix(m.By, byPrefix))
		case !ended && m.State != policy.RequestReturning:
			if err := s.opt.Host.EndMaintenance(ctx, by); err != nil {
				return refusalOf(err)
			}
			ended = true
		}
		if !pause(ctx) {
			return s.notYet(kindReturning, "this host is not back yet")
		}
	}
}

// notYet returns a refusal with the agent's first reason for waiting.
func (s *Server) notYet(kind, what string) *refusal {
	if reasons := s.opt.Host.Status().Reasons; len(reasons) > 0 {
		return refuse(http.StatusConflict, kind, "%s: %s: %s; retry", what, reasons[0].Code, reasons[0].Text)
	}
	return refuse(http.StatusConflict, kind, "%s; retry", what)
}

// refusalOf returns the refusal for an error of the agent.
func refusalOf(err error) *refusal {
	if e, ok := errors.AsType[*control.Error](err); ok && e.Code == control.CodeConflict {
		return refuse(http.StatusConflict, kindOther, "%s", e.Message)
	}
	return refuse(http.StatusServiceUnavailable, kindUnable, "%s", err)
}

// pause waits for one pollInterval, and reports whether ctx is still active.
func pause(ctx context.Context) bool {
	timer := time.NewTimer(pollInterval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
