// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package shutdown prepares a host when an operator shuts its machine down without quorumctl: with "reboot", "shutdown"
// or the power button. It requests maintenance as quorumctl does. As far as time allows, the host waits for other
// hosts, transfers leadership and stops etcd in an orderly way.
//
// It promises that it delays a shutdown but never prevents it. If a voter goes down before the cluster is ready, a
// message on the terminals of all users describes the effect on the quorum.
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
	// pollInterval is the time between two reads of the status. A read is cheap.
	pollInterval = 25 * time.Millisecond
	// displayTime is how long terminals can show a message before the shutdown ends their sessions. logind's time limit
	// leaves enough time for that: see systemd.Shutdown.
	displayTime = 300 * time.Millisecond
	// endTimeout limits the cancellation of the request, which writes one small file.
	endTimeout = 5 * time.Second
)

// Host is the part of the agent that a Handler needs.
type Host interface {
	control.Maintainer
	// Unhurry makes the host's request wait for other hosts again. It is called only for a request that Handler did not
	// make.
	Unhurry(ctx context.Context) error
}

// Handler handles a shutdown of the agent's machine.
type Handler struct {
	Host   Host
	Logger *slog.Logger
	Loud   slog.Level // log level of messages to the terminals of all users
}

// Prepare returns when the machine may go down, when a running command has ended, when the request is refused, or when
// the context ends. If it warns all users, it returns displayTime later.
func (h Handler) Prepare(ctx context.Context) {
	began := time.Now()
	err := h.request(ctx)
	runs := false
	if err == nil || isConflict(err) { // in a conflict, wait for the earlier request
		runs, err = h.wait(ctx)
	}
	took := time.Since(began).Round(time.Millisecond)
	switch {
	case err == nil && runs:
		h.Logger.Warn("shutdown allowed: systemd stops etcd, which the maintenance keeps running, and etcd transfers "+
			"leadership itself",
			"after", took.String())
		return
	case err == nil:
		h.Logger.Info("shutdown allowed: etcd stopped cleanly", "after", took.String())
		return
	case errors.Is(err, errEnded):
		h.Logger.Warn("shutdown allowed: the command has ended; systemd stops etcd, which quorumd was about to "+
			"start again", "after", took.String())
		return
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return // the shutdown was cancelled
	}
	status := h.Host.Status()
	why := []any{"after", took.String(), "error", err}
	if len(status.Reasons) > 0 {
		why = append(why, "code", status.Reasons[0].Code, "text", status.Reasons[0].Text)
	}
	switch {
	case commandRuns(status):
		h.Logger.Log(ctx, h.Loud, "THIS MACHINE IS GOING DOWN, WHICH KILLS THE RUNNING COMMAND",
			append(why, "command", status.Maintenance.Command, "remedy",
				"check what the command has done when the machine is back; until then no other host goes down")...)
		<-time.After(displayTime)
		return
	case status.Role != policy.RoleVoter:
		h.Logger.Warn("shutting down without permission; no vote is lost", why...)
		return
	case stopping(status):
		h.Logger.Warn("shutting down while etcd is still stopping; systemd completes the stop",
			why...)
		return
	}
	why = append(why, "remedy",
		"quorumd can delay a shutdown but not prevent it; next time, request it first: quorumctl maintenance on "+
			"--reason '<why>'")
	tolerance, known := toleranceWithout(status)
	switch {
	case !known:
		h.Logger.Log(ctx, h.Loud, "THIS MACHINE IS GOING DOWN AND QUORUMD CANNOT REACH THE ETCD CLUSTER", why...)
	case tolerance >= 0:
		h.Logger.Log(ctx, h.Loud, "THIS MACHINE IS GOING DOWN AND ETCD KEEPS ITS QUORUM IF NO OTHER VOTER GOES DOWN",
			append(why, "fault_tolerance", tolerance)...)
	default:
		h.Logger.Log(ctx, h.Loud, "THIS MACHINE IS GOING DOWN AND ETCD LOSES ITS QUORUM", why...)
	}
	<-time.After(displayTime)
}

// toleranceWithout returns the fault tolerance without this host's voter and without the voter named in the operation
// in flight, whatever its kind. A negative value means that quorum is lost. The tolerance is unknown if the agent
// cannot reach the cluster.
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
		if m.Live && m.Role == policy.RoleVoter && slices.Contains(goDown, m.ID) {
			tolerance--
		}
	}
	return tolerance, true
}

// stopping reports whether the host's operation is in progress and only waits for etcd to exit.
func stopping(s control.Status) bool {
	return s.Maintenance != nil && s.Maintenance.State == policy.RequestStopping && len(s.Reasons) > 0 &&
		s.Reasons[0].Code == string(policy.Stopping)
}

// commandRuns reports whether a command's program runs while etcd is stopped for it.
func commandRuns(s control.Status) bool {
	return s.Maintenance != nil && s.Maintenance.State == policy.RequestWorking
}

// Cancelled handles the cancellation of a shutdown: it ends the maintenance that Prepare requested, or makes an earlier
// request wait for other hosts again.
func (h Handler) Cancelled(ctx context.Context) {
	m := h.Host.Status().Maintenance
	if m == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	if m.By != by {
		if err := h.Host.Unhurry(ctx); err != nil {
			h.Logger.Error("shutdown cancelled, but this host's request still skips the wait for other hosts",
				"error", err)
		}
		return
	}
	if err := h.Host.EndMaintenance(ctx, by); err != nil {
		h.Logger.Error("shutdown cancelled, but etcd cannot be started again; run quorumctl maintenance "+
			"off", "error", err)
	}
}

func (h Handler) request(ctx context.Context) error {
	_, err := h.Host.RequestMaintenance(ctx, control.MaintenanceRequest{
		Work: policy.WorkReboot, Reason: reason, For: control.Duration(control.DefaultMaintenance),
		External: true, Hurried: true,
	}, by)
	return err
}

// errEnded means that a command was running when the shutdown began, and has ended.
var errEnded = errors.New("the command has ended")

// wait waits until the machine may go down, or until a running command has ended. runs reports whether etcd keeps
// running during the operator's maintenance.
func (h Handler) wait(ctx context.Context) (runs bool, err error) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	ran := false
	for {
		s := h.Host.Status()
		if m := s.Maintenance; m != nil && m.State == policy.RequestSafe {
			return m.KeepRunning, nil
		}
		if ran && !commandRuns(s) {
			return false, errEnded
		}
		ran = commandRuns(s)
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
