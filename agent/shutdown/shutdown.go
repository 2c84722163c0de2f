// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package shutdown prepares a host when an operator shuts its machine down without quorumctl: by "reboot", "shutdown"
// or the power button. It makes the same maintenance request as quorumctl, so the host waits for its turn, transfers
// the leadership and stops etcd in an orderly way, as far as the time allows.
//
// It promises that a shutdown is delayed and never prevented, and that the terminals of all users show what happens to
// the quorum if a voter goes down before the cluster was ready for it.
package shutdown

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

const (
	by     = "logind"
	reason = "the machine is shutting down"
	// glance is the time between two reads of the status, which only copy it.
	glance = 25 * time.Millisecond
	// readTime is how long a terminal gets to show a line before the shutdown ends its session. logind's limit leaves
	// that much: see systemd.Shutdown.
	readTime = 300 * time.Millisecond
	// endTimeout bounds cancelling the request, which writes one small file.
	endTimeout = 5 * time.Second
)

// Host is what a Reaction needs of the agent.
type Host interface {
	control.Maintainer
	// Unhurry makes another operator's request wait for its turn again.
	Unhurry(ctx context.Context) error
}

// Reaction is the agent's reaction to a shutdown of its machine.
type Reaction struct {
	Host   Host
	Logger *slog.Logger
	Loud   slog.Level // of a line that every logged-in user must see
}

// Prepare returns when the machine may go down, or when its context ends; 0.3 s later if the users must be warned.
func (r Reaction) Prepare(ctx context.Context) {
	began := time.Now()
	err := r.ask(ctx)
	runs := false
	if err == nil || isConflict(err) { // an earlier request is waited for as well
		runs, err = r.wait(ctx)
	}
	took := time.Since(began).Round(time.Millisecond)
	switch {
	case err == nil && runs:
		r.Logger.Warn("shutdown allowed: systemd stops etcd, which was to keep running, and etcd transfers "+
			"leadership itself",
			"after", took.String())
		return
	case err == nil:
		r.Logger.Info("shutdown allowed: etcd stopped cleanly", "after", took.String())
		return
	case errors.Is(err, errEnded):
		r.Logger.Warn("shutdown allowed: the command has ended; systemd stops etcd, which quorumd was about to "+
			"start again", "after", took.String())
		return
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return // cancelled
	}
	status := r.Host.Status()
	why := []any{"after", took.String(), "error", err}
	if len(status.Reasons) > 0 {
		why = append(why, "code", status.Reasons[0].Code, "text", status.Reasons[0].Text)
	}
	switch {
	case working(status):
		r.Logger.Log(ctx, r.Loud, "THIS MACHINE IS GOING DOWN AND KILLS THE RUNNING COMMAND",
			append(why, "command", status.Maintenance.Command, "remedy",
				"check what the command has done when the machine is back; until then no other host goes down")...)
		<-time.After(readTime)
		return
	case status.Role != control.RoleVoter:
		r.Logger.Warn("shutting down without permission; no vote is lost", why...)
		return
	case stopping(status):
		r.Logger.Warn("shutting down while etcd still stops; systemd completes the stop",
			why...)
		return
	}
	why = append(why, "remedy",
		"quorumd can delay a shutdown, not prevent it; next time request it first: quorumctl maintenance on")
	tolerance, known := toleranceWithout(status)
	switch {
	case !known:
		r.Logger.Log(ctx, r.Loud, "THIS MACHINE IS GOING DOWN AND REPORTS NO ETCD QUORUM", why...)
	case tolerance >= 0:
		r.Logger.Log(ctx, r.Loud, "THIS MACHINE IS GOING DOWN AND ETCD KEEPS ITS QUORUM IF NO OTHER VOTER GOES DOWN",
			append(why, "fault_tolerance", tolerance)...)
	default:
		r.Logger.Log(ctx, r.Loud, "THIS MACHINE IS GOING DOWN AND ETCD LOSES ITS QUORUM", why...)
	}
	<-time.After(readTime)
}

// toleranceWithout returns the fault tolerance once this host's voter is down, and the voter of another host that an
// operation in flight takes down; below 0 there is no quorum. It is unknown without a quorum in view.
func toleranceWithout(s control.Status) (tolerance int, known bool) {
	if !s.Cluster.Reachable {
		return 0, false
	}
	var goDown []string // member IDs
	for _, h := range s.Hosts {
		if h.ID == s.Host.ID {
			goDown = append(goDown, h.MemberID)
		}
	}
	if s.Op != nil {
		goDown = append(goDown, s.Op.MemberID)
	}
	tolerance = s.Cluster.FaultTolerance
	for _, m := range s.Cluster.Members {
		if m.Live && m.Role == control.RoleVoter && slices.Contains(goDown, m.ID) {
			tolerance--
		}
	}
	return tolerance, true
}

// stopping reports whether the host is in its operation and only waits for etcd to end.
func stopping(s control.Status) bool {
	return s.Maintenance != nil && s.Maintenance.State == control.MaintenanceStopping && len(s.Reasons) > 0 &&
		s.Reasons[0].Code == string(policy.Stopping)
}

// working reports whether a command's program runs while etcd is stopped for it.
func working(s control.Status) bool {
	return s.Maintenance != nil && s.Maintenance.State == control.MaintenanceWorking
}

// Cancelled brings the host back if the shutdown is cancelled.
func (r Reaction) Cancelled(ctx context.Context) {
	m := r.Host.Status().Maintenance
	if m == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	if m.By != by {
		if err := r.Host.Unhurry(ctx); err != nil {
			r.Logger.Error("shutdown cancelled, but this host's request still skips the wait for other hosts",
				"error", err)
		}
		return
	}
	if err := r.Host.EndMaintenance(ctx, by); err != nil {
		r.Logger.Error("shutdown cancelled, but etcd cannot be started again; run quorumctl maintenance "+
			"off", "error", err)
	}
}

func (r Reaction) ask(ctx context.Context) error {
	_, err := r.Host.RequestMaintenance(ctx, control.MaintenanceRequest{
		Work: control.WorkReboot, Reason: reason, For: control.Duration(control.DefaultMaintenance),
		External: true, Hurried: true,
	}, by)
	return err
}

// errEnded means that the command that was running at the start of the shutdown has ended.
var errEnded = errors.New("the command has ended")

// wait returns once the machine may go down, or once a running command has ended. runs is true if etcd was to keep
// running in the operator's maintenance.
func (r Reaction) wait(ctx context.Context) (runs bool, err error) {
	tick := time.NewTicker(glance)
	defer tick.Stop()
	worked := false
	for {
		s := r.Host.Status()
		if m := s.Maintenance; m != nil && m.State == control.MaintenanceSafe {
			return m.KeepRunning, nil
		}
		if worked && !working(s) {
			return false, errEnded
		}
		worked = working(s)
		select {
		case <-ctx.Done():
			return false, errors.New("time ran out")
		case <-tick.C:
		}
	}
}

func isConflict(err error) bool {
	e, ok := errors.AsType[*control.Error](err)
	return ok && e.Code == control.CodeConflict
}
