// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// holdName is the file whose presence keeps etcd's unit from starting, by
// ConditionPathExists= in the unit's drop-in. etcd must start after a boot without quorumd, so its
// unit is enabled; but on a host that holds no member of the cluster, an etcd that starts by itself
// would make a cluster of its own, or come back as a member that was removed. It lies in the state directory unless
// whoever opens the State says otherwise.
const holdName = "etcd.hold"

// HoldText is what such a file says.
const HoldText = `quorumd keeps etcd from starting by itself: this host holds no member of its
cluster, or is in maintenance or under a plan of recovery; 'quorumctl status' says which. quorumd removes
this file when the host joins, or when its maintenance or the recovery ends. To start etcd by hand all the
same, remove it.
`

// StartGuarded tells whether etcd is kept from starting by itself, as it was last noted here, and whether that is
// known.
func (f *State) StartGuarded() (held, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hold, f.holdKnown
}

// SetStartGuard keeps etcd from starting by itself, or lets it go. What has failed may have been done all the same, or
// may be done later: whether the file is there is not known then, until it is made or removed anew.
func (f *State) SetStartGuard(ctx context.Context, held bool) error {
	defer f.writes()()
	err := f.holder.SetStartGuard(ctx, held)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hold, f.holdKnown = held, err == nil
	return err
}

// StartGuard keeps etcd's unit from starting by itself, for as long as a file is there. What is noted outlives the
// agent. Where it is not known whether the file is there, it must be made or removed anew: neither may be taken for
// granted.
type StartGuard interface {
	StartGuarded() (held, known bool)
	SetStartGuard(ctx context.Context, held bool) error
}

// StartGuardFile is a Hold that the agent writes itself.
type StartGuardFile struct {
	Files Files
	Path  string
}

// StartGuarded tells whether the file is there, if that can be told.
func (h StartGuardFile) StartGuarded() (held, known bool) {
	_, err := h.Files.Read(h.Path)
	return err == nil, err == nil || errors.Is(err, fs.ErrNotExist)
}

// SetStartGuard makes the file, or removes it.
func (h StartGuardFile) SetStartGuard(_ context.Context, held bool) error {
	if held {
		return h.Files.Write(h.Path, []byte(HoldText), true)
	}
	if err := h.Files.Remove(h.Path); err != nil {
		return fmt.Errorf("cannot let etcd start: %w", err)
	}
	return nil
}
