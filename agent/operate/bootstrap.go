// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// dataWait limits AwaitData. The rest of the server's time for a request is for the request itself.
const dataWait = 7 * time.Second

// AwaitData waits until a round has read the data directory or has failed to read it, if a bootstrap would be refused
// only because no round has read the directory yet. It waits at most dataWait, because the disk may hang.
func (o *Operator) AwaitData(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, dataWait)
	defer cancel()
	for {
		next := o.opt.Rounds.Next() // taken before the current round is read, so that no round is missed
		if r := o.opt.Rounds.Current(); r != nil && !o.lacksData(r) {
			return
		}
		select {
		case <-next:
		case <-ctx.Done():
			return
		}
	}
}

// lacksData reports whether a bootstrap would be refused only because no round has read the data directory yet.
func (o *Operator) lacksData(r *round.Round) bool {
	against := policy.AgainstBootstrap(r.View, o.opt.Config.Etcd.DataDir, o.opt.Files.LastClusterPath())
	return against != nil && against.Code == policy.Starting && r.View.Data.Detail == ""
}

// Bootstrap records the request to create a new cluster on this host, unless MayBootstrap refuses it.
func (o *Operator) Bootstrap(ctx context.Context, by string) error {
	if o.opt.Rounds.Current() != nil && o.opt.Files.Bootstrap() != nil {
		return nil // a repeated request
	}
	if err := o.MayBootstrap(ctx); err != nil {
		return err
	}
	if err := hoststate.Within(ctx, func() error {
		return o.opt.Files.RequestBootstrap(by, o.opt.Wall())
	}); err != nil {
		return err
	}
	o.opt.Logger.Warn("bootstrap requested", "by", by)
	o.opt.Wake()
	return nil
}

// MayBootstrap returns why this host would not create a new cluster now, or nil. It changes nothing. It refuses at any
// sign of an existing cluster, because a cluster is created only once.
func (o *Operator) MayBootstrap(ctx context.Context) error {
	const cannot = "cannot bootstrap: "
	r, err := o.current(cannot)
	if err != nil {
		return err
	}
	against := policy.AgainstBootstrap(r.View, o.opt.Config.Etcd.DataDir, o.opt.Files.LastClusterPath())
	if err := refused(cannot, against); err != nil {
		return err
	}
	others, missing := cluster.Others(ctx, o.opt.Etcd, o.opt.Config.Etcd.ClientURL)
	return refused(cannot, policy.AgainstAutomaticBootstrap(others, missing, cluster.Refuses))
}
