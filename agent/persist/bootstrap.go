// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package persist

import (
	"context"

	"github.com/quorumd/quorumd/agent/round"
)

// noteBootstrapAttempt records the bootstrap attempt that this host is committed to, or that this host itself
// bootstraps the cluster.
func (k *Persister) noteBootstrapAttempt(ctx context.Context, r *round.Round) {
	note, list := r.Decision.Notes.BootstrapAttempt, r.View.BootstrapAttempt.List
	switch {
	case note.Start:
		k.note(ctx, &k.automaticBootstrap, "bootstrap attempt", "cannot start to create the "+
			"cluster", func(context.Context) error {
			k.log.Warn("all listed hosts are new and agree; creating the cluster", "list", list)
			return k.files.StartBootstrapAttempt("bootstrap.expect", r.Wall)
		})
	case note.Decide:
		token := r.Bootstrap.Token
		k.note(ctx, &k.automaticBootstrap, "bootstrap attempt", "cannot record that this host creates the cluster",
			func(context.Context) error { return k.files.DecideBootstrap(token) })
	case note.Begin:
		k.note(ctx, &k.automaticBootstrap, "bootstrap attempt", "cannot save the bootstrap attempt of this host",
			func(context.Context) error { return k.files.BeginBootstrapAttempt(list) })
	case note.Promise != "":
		k.note(ctx, &k.automaticBootstrap, "bootstrap attempt", "cannot save the bootstrap attempt this host joins",
			func(context.Context) error { return k.files.CommitToAttempt(list, note.Promise) })
	}
}
