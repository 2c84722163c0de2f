// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// noteHold brings the file in line with what the round has decided, beside the loop: the disk may hang.
func (a *Agent) noteHold(ctx context.Context, r *round.Round) {
	want := r.Decision.Notes.Hold
	if want == policy.HoldAsIs || a.files.Held() == (want == policy.HoldBack) {
		return
	}
	a.holding.Refresh(ctx, a.opt.Now, noteEvery, noteTimeout, func(ctx context.Context) (struct{}, error) {
		a.opt.noting("guard")
		err := a.files.SetHeld(ctx, want == policy.HoldBack)
		if err != nil {
			a.log.Error("not noted whether etcd may start by itself", "error", err)
		}
		return struct{}{}, err
	})
}
