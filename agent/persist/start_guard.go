// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package persist

import (
	"context"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// noteStartGuard creates or removes the start guard as the round has decided.
func (k *Persister) noteStartGuard(ctx context.Context, r *round.Round) {
	want := r.Decision.Notes.StartGuard
	if k.guarded(want) {
		return
	}
	k.note(ctx, &k.startGuard, "guard", "cannot update the start guard", func(ctx context.Context) error {
		return k.guard(ctx, want)
	})
}

// guarded reports whether the start guard is already in the wanted state.
func (k *Persister) guarded(want policy.StartGuard) bool {
	held, known := k.files.StartGuarded()
	return want == policy.GuardUnchanged || known && held == (want == policy.GuardSet)
}

// guard creates or removes the start guard if necessary.
func (k *Persister) guard(ctx context.Context, want policy.StartGuard) error {
	if k.guarded(want) {
		return nil
	}
	return k.files.SetStartGuard(ctx, want == policy.GuardSet)
}
