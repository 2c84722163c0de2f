// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package persist

import (
	"context"

	"github.com/quorumd/quorumd/agent/round"
)

// noteRemoval ends the removal that was requested on this host, if the round has decided so.
func (k *Persister) noteRemoval(ctx context.Context, r *round.Round) {
	note := r.Decision.Notes.Removal
	if !note.Ends {
		return
	}
	k.note(ctx, &k.removal, "removal", "cannot save the end of the removal", func(context.Context) error {
		return k.files.RemovalStandingEnds(r.Removal, note.Code, note.Text, r.Wall)
	})
}
