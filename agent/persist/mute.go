// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package persist

import (
	"context"

	"github.com/quorumd/quorumd/agent/round"
)

// noteMutes deletes ended mutes. Otherwise, a mute that ended because its finding got worse would apply again when the
// finding improves.
func (k *Persister) noteMutes(ctx context.Context, r *round.Round) {
	if len(r.MutesOver) == 0 {
		return
	}
	k.note(ctx, &k.mutes, "mutes", "cannot save the end of a mute", func(context.Context) error {
		return k.files.EndMutes(r.MutesOver)
	})
}
