// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "context"

// Backend is what the server queries and controls.
type Backend interface {
	Reader
	Operator
	Remover
	HostOperator
}

// HostOperator carries out an operator's requests about single hosts and snapshots.
type HostOperator interface {
	Maintainer
	Muter
	Recoverer
	Snapshotter
}

// StatusSource returns the latest status. Its methods answer from memory and must not wait for anything.
type StatusSource interface {
	// Status returns the newest status.
	Status() Status
	// Revision returns the number of the current status. It changes with each new one.
	Revision() uint64
	// Checks returns all checks of this machine and their current results.
	Checks() Checks
}

// Reader answers queries.
type Reader interface {
	StatusSource
	// MayBootstrap returns the error with which Bootstrap would be refused now. It changes nothing.
	MayBootstrap(ctx context.Context) error
	// ProbeNow waits until Status includes an observation made after the call. It ends with the context.
	ProbeNow(ctx context.Context) error
	// History returns the newest limit lines, oldest first. With ErrNotNewest, etcd may contain newer lines.
	History(ctx context.Context, limit int) ([]HistoryLine, error)
}

// Operator carries out an operator's requests. by names the operator, such as "root" or "uid 1000 (alice)". The context
// carries a deadline. An *Error reaches the caller unchanged, with the status of its kind, its code and hint; its
// message begins with "cannot".
type Operator interface {
	// Bootstrap requests that this host bootstrap a new cluster. It returns once the request is accepted; the status
	// shows its progress.
	Bootstrap(ctx context.Context, by string) error
	// Pause stops every step of every host and returns the recorded pause.
	Pause(ctx context.Context, req PauseRequest, by string) (Pause, error)
	// Resume ends the pause. Without a pause it does nothing and is refused with CodeNotPaused.
	Resume(ctx context.Context, by string) error
	// ReleaseOp deletes the record of the operation in flight, whatever the state of its host.
	ReleaseOp(ctx context.Context, req ReleaseRequest, by string) error
}

// Remover removes members on an operator's request. The rules for Operator's methods apply.
type Remover interface {
	// RemoveMember records the request to remove a member from etcd for good and returns it; the status shows its
	// progress. A request that waiting cannot help is refused. If this host has removed the member already, the State
	// is RemovalDone.
	RemoveMember(ctx context.Context, req RemovalRequest, by string) (Removal, error)
}

// Maintainer takes hosts down one at a time and brings them back, on an operator's request. The rules for Operator's
// methods apply.
type Maintainer interface {
	// AskMaintenance records the request to take this host down and returns it; the status shows its progress. A
	// repeated request for the same work renews the pending one, with the new reason and end. A request for other work
	// is refused with CodeConflict while one is pending.
	AskMaintenance(ctx context.Context, req MaintenanceRequest, by string) (Maintenance, error)
	// EndMaintenance cancels a queued request, or brings the host back if its operation has begun. Without a request it
	// does nothing and succeeds.
	EndMaintenance(ctx context.Context, by string) error
	// StartRollout restarts or reboots one host after another, or runs a command on each. It is refused with
	// CodeConflict while another rollout is running or paused, and as Wrong if it names an unknown host.
	StartRollout(ctx context.Context, req RolloutRequest, by string) (Rollout, error)
	// SetRollout makes the rollout RolloutRunning (again), RolloutPaused or RolloutAborted, and returns it. Without a
	// rollout it is refused with CodeConflict.
	SetRollout(ctx context.Context, state, by string) (Rollout, error)
}
