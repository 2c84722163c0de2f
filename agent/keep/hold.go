// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package keep

import (
	"context"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// noteHold brings the file in line with what the round has decided, beside the loop: the disk may hang.
func (k *Keeper) noteHold(ctx context.Context, r *round.Round) {
	want := r.Decision.Notes.Hold
	held, known := k.files.Held()
	if want == policy.HoldAsIs || known && held == (want == policy.HoldBack) {
		return
	}
	k.note(ctx, &k.hold, "guard", "not noted whether etcd may start by itself", func(ctx context.Context) error {
		return k.files.SetHeld(ctx, want == policy.HoldBack)
	})
}
