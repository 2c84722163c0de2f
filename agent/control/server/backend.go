// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/recovery"
)

// Backend is what the server queries and controls. A context carries a deadline. by names the operator who requests a
// change, such as "root" or "uid 1000 (alice)". An *Error reaches the caller unchanged, with the status of its kind,
// its code and hint; its message begins with "cannot".
type Backend interface {
	// Status returns the newest status. Status, Revision, Checks and SnapshotJob answer from memory, and must not wait
	// for anything.
	Status() control.Status
	// Revision returns the number of the current status. It changes with each new one.
	Revision() uint64
	// Checks returns all checks of this machine and their current results.
	Checks() control.Checks

	// MayBootstrap returns the error with which Bootstrap would be refused now. It changes nothing.
	MayBootstrap(ctx context.Context) error
	// ProbeNow waits until Status includes an observation made after the call. It ends with the context.
	ProbeNow(ctx context.Context) error
	// History returns the newest limit lines, oldest first. With ErrNotNewest, etcd may contain newer lines.
	History(ctx context.Context, limit int) ([]control.HistoryLine, error)

	// Bootstrap requests that this host bootstrap a new cluster. It returns once the request is accepted; the status
	// shows its progress.
	Bootstrap(ctx context.Context, by string) error
	// Pause stops every step of every host and returns the recorded pause.
	Pause(ctx context.Context, req control.PauseRequest, by string) (control.Pause, error)
	// Resume ends the pause. Without a pause it does nothing and is refused with CodeNotPaused.
	Resume(ctx context.Context, by string) error
	// ReleaseOp deletes the record of the operation in flight, whatever the state of its host.
	ReleaseOp(ctx context.Context, req control.ReleaseRequest, by string) error

	// RemoveMember records the request to remove a member from etcd for good and returns it; the status shows its
	// progress. A request that waiting cannot help is refused. If this host has removed the member already, the State
	// is RemovalDone.
	RemoveMember(ctx context.Context, req control.RemovalRequest, by string) (control.Removal, error)

	// AskMaintenance records the request to take this host down and returns it; the status shows its progress. A
	// repeated request for the same work renews the pending one, with the new reason and end. A request for other work
	// is refused with CodeConflict while one is pending.
	AskMaintenance(ctx context.Context, req control.MaintenanceRequest, by string) (control.Maintenance, error)
	// EndMaintenance cancels a queued request, or brings the host back if its operation has begun. Without a request it
	// does nothing and succeeds.
	EndMaintenance(ctx context.Context, by string) error
	// StartRollout restarts or reboots one host after another, or runs a command on each. It is refused with
	// CodeConflict while another rollout is running or paused, and as Wrong if it names an unknown host.
	StartRollout(ctx context.Context, req control.RolloutRequest, by string) (control.Rollout, error)
	// SetRollout makes the rollout RolloutRunning (again), RolloutPaused or RolloutAborted, and returns it. Without a
	// rollout it is refused with CodeConflict.
	SetRollout(ctx context.Context, state, by string) (control.Rollout, error)

	// Mute records a mute on this host's disk, replaces one of the same code, and returns it. Muting a finding that
	// blocks anything is refused.
	Mute(ctx context.Context, req control.MuteRequest, by string) (control.Mute, error)
	// Unmute ends the mute of a code. Without one it is refused with CodeNotMuted.
	Unmute(ctx context.Context, code, by string) error

	// RecoveryFacts returns what this host and its data know about the cluster. It changes nothing.
	RecoveryFacts(ctx context.Context) (recovery.Facts, error)
	// ApplyRecovery has this host do its part of a plan and returns the plan's state; the status shows its progress. A
	// plan that is already in force, or has ended well, is returned unchanged.
	ApplyRecovery(ctx context.Context, plan recovery.Plan, by string) (control.Recovery, error)
	// AbandonRecovery abandons the plan in force and returns its state. It is refused with CodeConflict if there is no
	// plan, or if this host has begun to move its data aside.
	AbandonRecovery(ctx context.Context, by string) (control.Recovery, error)

	// StartSnapshot starts a job and returns its state. It is refused with CodeSnapshotRunning while another job is
	// running.
	StartSnapshot(ctx context.Context, req control.SnapshotRequest, by string) (control.SnapshotJob, error)
	// SnapshotJob returns the last job, from memory; its Number is 0 if there was none.
	SnapshotJob() control.SnapshotJob
}
