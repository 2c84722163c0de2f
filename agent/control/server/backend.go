// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/health"
)

// Backend answers the queries and carries out the changes. Every context has a deadline. by names the operator who
// requests a change, such as "root" or "uid 1000 (alice)". A *control.Error reaches the caller unchanged, with the HTTP
// status of its kind; its message begins with "cannot".
type Backend interface {
	// Status returns the newest status. Status, Revision, Checks and SnapshotJob answer from memory and do not block.
	Status() control.Status
	// Revision returns the number of the current status. It changes with each new one.
	Revision() uint64
	// Checks returns all checks of this machine and their current results.
	Checks() control.Checks

	// MayBootstrap returns the error with which Bootstrap would refuse a request now, or nil. It changes nothing.
	MayBootstrap(ctx context.Context) error
	// AwaitData waits a limited time until the agent has read the data directory or has failed to read it. A bootstrap
	// depends on the contents.
	AwaitData(ctx context.Context)
	// ProbeNow waits until Status includes an observation made after the call. It ends with the context.
	ProbeNow(ctx context.Context) error
	// History returns the newest limit lines, oldest first. With ErrNotNewest, etcd may contain newer lines.
	History(ctx context.Context, limit int) ([]control.HistoryLine, error)

	// Bootstrap requests that this host bootstrap a new cluster. It returns when the request is accepted; the status
	// shows its progress.
	Bootstrap(ctx context.Context, by string) error
	// Pause records a pause, which stops all steps of all hosts, and returns it.
	Pause(ctx context.Context, req control.PauseRequest, by string) (control.Pause, error)
	// Resume ends the pause. Without a pause it refuses with CodeNotPaused.
	Resume(ctx context.Context, by string) error
	// ReleaseOp deletes the record of the operation in flight, whatever its host's state.
	ReleaseOp(ctx context.Context, req control.ReleaseRequest, by string) error

	// RemoveMember records the request to remove a member from etcd for good and returns it; the status shows its
	// progress. It refuses a request that can never succeed. If this host has already removed the member, the State is
	// RemovalDone.
	RemoveMember(ctx context.Context, req control.RemovalRequest, by string) (control.Removal, error)

	// RequestMaintenance records a request for this host and returns it; the status shows its progress. A repeated
	// request for the same work replaces the reason and the end of the pending request. It is refused with
	// CodeConflict if the pending request is ending, if its program has been started, or if only the new request is
	// interruptible and the work has begun. While a request is pending, a request for other work is refused with
	// CodeConflict, too.
	RequestMaintenance(ctx context.Context, req control.MaintenanceRequest, by string) (control.Maintenance, error)
	// EndMaintenance cancels a queued request, or brings the host back if its operation has begun. It refuses to cancel
	// a request that the running rollout would make again. Without a request it succeeds and does nothing.
	EndMaintenance(ctx context.Context, by string) error
	// StartRollout starts the requested work on one host after another. It refuses with CodeConflict while another
	// rollout is running or paused, and with the kind Wrong if the request names an unknown host.
	StartRollout(ctx context.Context, req control.RolloutRequest, by string) (control.Rollout, error)
	// SetRollout sets the state of the rollout to RolloutRunning, RolloutPaused or RolloutAborted, and returns the
	// rollout. It refuses with CodeConflict if there is no rollout, or if the rollout is already done or aborted.
	SetRollout(ctx context.Context, state, by string) (control.Rollout, error)

	// Resize records the size of the cluster and returns it with the plan; the status shows its progress. It refuses
	// with CodeConflict if another operator has changed the size since IfRevision.
	Resize(ctx context.Context, req control.ResizeRequest, by string) (control.Resize, error)
	// Size returns the size of the cluster with the steps that are left. It changes nothing.
	Size(ctx context.Context) (control.Resize, error)

	// Retire records that a host leaves for good, or deletes that record, and returns the result with the plan. The
	// status shows the progress. It refuses with CodeConflict if another operator has changed the record meanwhile.
	Retire(ctx context.Context, req control.RetireRequest, by string) (control.Retirement, error)
	// RetiredHosts lists the retired hosts. It changes nothing.
	RetiredHosts(ctx context.Context) (control.RetiredHosts, error)
	// TransferLeadership requests a leadership transfer and returns its plan; the status shows its progress.
	TransferLeadership(ctx context.Context, req control.TransferRequest, by string) (control.Transfer, error)

	// Mute records a mute on this host's disk and returns it. It replaces an earlier mute of the same code, and refuses
	// to mute a finding that blocks anything.
	Mute(ctx context.Context, req control.MuteRequest, by string) (health.Mute, error)
	// Unmute ends the mute of a code. Without a mute it refuses with CodeNotMuted.
	Unmute(ctx context.Context, code, by string) error

	// RecoveryFacts returns the facts about this host and its data that a recovery plan requires. It changes nothing.
	RecoveryFacts(ctx context.Context) (recovery.Facts, error)
	// ApplyRecovery begins this host's part of a plan and returns the plan's state; the status shows its progress. If
	// the plan is already in force or has succeeded, it returns that state and changes nothing.
	ApplyRecovery(ctx context.Context, plan recovery.Plan, by string) (control.Recovery, error)
	// AbandonRecovery abandons the plan in force and returns its state. It refuses with CodeConflict if there is no
	// plan, or if this host has begun to move its data aside.
	AbandonRecovery(ctx context.Context, by string) (control.Recovery, error)

	// StartSnapshot starts a job and returns its state. It refuses with CodeSnapshotRunning while another job is
	// running.
	StartSnapshot(ctx context.Context, req control.SnapshotRequest, by string) (control.SnapshotJob, error)
	// SnapshotJob returns the last job, from memory; its Number is 0 if there was none.
	SnapshotJob() control.SnapshotJob
}
