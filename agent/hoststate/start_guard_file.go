// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// startGuardName is the file that keeps etcd's unit from starting, through ConditionPathExists= in the unit's drop-in.
// etcd must start after a boot even without quorumd, so its unit is enabled. But on a host without a member, an etcd
// started by systemd would bootstrap a cluster of its own or start as a removed member. The file is in the state
// directory unless the caller passes a different start guard to Open.
const startGuardName = "etcd.hold"

// HoldText is the content of the start guard file, for operators who find it.
const HoldText = `quorumd keeps etcd from starting by itself: this host has no member in its
cluster, has lost its member's data, is in maintenance, or has a recovery plan in force; 'quorumctl status'
shows which. quorumd removes this file when the host joins, or when its maintenance or the recovery ends. To
start etcd by hand anyway, remove this file.
`

// StartGuarded reports whether the start guard is set, as last recorded, and whether that is known.
func (f *State) StartGuarded() (held, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.guarded, f.guardKnown
}

// SetStartGuard sets or removes the start guard. A failed call may still have taken effect or may take effect later, so
// the state of the guard is unknown until the next successful call.
func (f *State) SetStartGuard(ctx context.Context, held bool) error {
	defer f.writes()()
	err := f.guard.SetStartGuard(ctx, held)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.guarded, f.guardKnown = held, err == nil
	return err
}

// StartGuard keeps systemd from starting etcd's unit while a file exists. The file outlives the agent. If it is unknown
// whether the file exists, the caller must set or remove the guard again.
type StartGuard interface {
	StartGuarded() (held, known bool)
	SetStartGuard(ctx context.Context, held bool) error
}

// StartGuardFile is a StartGuard whose file the agent itself writes.
type StartGuardFile struct {
	Files Files
	Path  string
}

// StartGuarded reports whether the file exists, and whether that is known.
func (h StartGuardFile) StartGuarded() (held, known bool) {
	_, err := h.Files.Read(h.Path)
	return err == nil, err == nil || errors.Is(err, fs.ErrNotExist)
}

// SetStartGuard creates the file or removes it.
func (h StartGuardFile) SetStartGuard(_ context.Context, held bool) error {
	if held {
		return h.Files.Write(h.Path, []byte(HoldText), true)
	}
	if err := h.Files.Remove(h.Path); err != nil {
		return fmt.Errorf("cannot remove the start guard: %w", err)
	}
	return nil
}
