// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "context"

// Backend is what the server asks.
type Backend interface {
	Reader
	Operator
	Remover
	HostOperator
}

// HostOperator does what concerns single hosts, and the snapshots, when an operator asks for it.
type HostOperator interface {
	Maintainer
	Muter
	Recoverer
	Snapshotter
}

// StatusSource is the latest status. Its methods answer from memory and must not wait for anything.
type StatusSource interface {
	// Status gives the newest picture.
	Status() Status
	// Revision returns the number of the picture that Status shows. It changes with each new picture.
	Revision() uint64
	// Checks gives what is looked at on this machine, and where each check stands.
	Checks() Checks
}

// Reader answers those who look.
type Reader interface {
	StatusSource
	// MayBootstrap gives the error with which Bootstrap would be refused now, and changes nothing.
	MayBootstrap(ctx context.Context) error
	// ProbeNow waits until Status gives what was seen after the call. It ends with the context.
	ProbeNow(ctx context.Context) error
	// History gives the newest limit lines, oldest first; with ErrNotNewest lines of which it is not known whether
	// newer ones stand in etcd.
	History(ctx context.Context, limit int) ([]HistoryLine, error)
}

// Operator does what an operator asks for. By says who asks, such as "root" or
// "uid 1000 (alice)". The context carries a deadline. An error that is an *Error reaches the
// caller as it is, with the status of its kind, its code and hint; the message begins with "cannot".
type Operator interface {
	// Bootstrap asks for a new cluster to be started on this host. It returns once the wish is
	// accepted; the status shows how it goes.
	Bootstrap(ctx context.Context, by string) error
	// Pause stops every step of every host and gives the pause as it was recorded.
	Pause(ctx context.Context, req PauseRequest, by string) (Pause, error)
	// Resume ends the pause. Without a pause it does nothing and is refused with CodeNotPaused.
	Resume(ctx context.Context, by string) error
	// ReleaseOp deletes the record of the operation in flight, whatever state its host is in.
	ReleaseOp(ctx context.Context, req ReleaseRequest, by string) error
}

// Remover takes members out when an operator asks for it. The rules of an Operator's methods hold for it.
type Remover interface {
	// RemoveMember records the wish that a member be taken out of etcd for good, and gives it as it stands; the status
	// shows how it goes. What no waiting would change is refused. Of one that this host has removed already the State
	// is RemovalDone.
	RemoveMember(ctx context.Context, req RemovalRequest, by string) (Removal, error)
}

// Maintainer takes hosts down one at a time and brings them back, when an operator asks for it.
// The rules of an Operator's methods hold for these.
type Maintainer interface {
	// AskMaintenance records the wish that this host be taken down, and gives it as it stands; the
	// status shows how it goes. The same work asked for again is the wish that stands, with the new
	// reason and end. Another work while one is asked for is refused with CodeConflict.
	AskMaintenance(ctx context.Context, req MaintenanceRequest, by string) (Maintenance, error)
	// EndMaintenance withdraws a wish whose turn has not come, and brings the host back when it
	// has. When nothing was asked for it does nothing and succeeds.
	EndMaintenance(ctx context.Context, by string) error
	// StartRollout has one host after another restarted or rebooted, or run a command. While another rollout is
	// running or paused it is refused with CodeConflict, and a host that nobody knows as
	// Wrong.
	StartRollout(ctx context.Context, req RolloutRequest, by string) (Rollout, error)
	// SetRollout makes the rollout RolloutRunning (again), RolloutPaused or RolloutAborted, and
	// gives it as it stands. When there is none it is refused with CodeConflict.
	SetRollout(ctx context.Context, state, by string) (Rollout, error)
}
