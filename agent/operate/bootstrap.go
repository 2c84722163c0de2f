// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/local"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// Bootstrap records the request to make a new cluster of this host, unless MayBootstrap refuses it.
func (o *Operator) Bootstrap(ctx context.Context, by string) error {
	if o.opt.Rounds.Current() != nil && o.opt.Files.Bootstrap() != nil {
		return nil // asked twice is asked once
	}
	if err := o.MayBootstrap(ctx); err != nil {
		return err
	}
	if err := local.Within(ctx, func() error { return o.opt.Files.RequestBootstrap(by, o.opt.Wall()) }); err != nil {
		return err
	}
	o.opt.Logger.Warn("bootstrap requested", "by", by)
	o.opt.Wake()
	return nil
}

// MayBootstrap says why a new cluster would not be made of this host now, and changes nothing. It is refused when there
// is any sign of a cluster: "new" happens once.
func (o *Operator) MayBootstrap(ctx context.Context) error {
	const cannot = "cannot bootstrap: "
	r := o.opt.Rounds.Current()
	if r == nil {
		return refuse(control.NotNow, codeNotYet, cannot+"quorumd has just started",
			"try again in a few seconds")
	}
	v := r.View
	switch {
	case v.Self.Mode != policy.Manage:
		return refuse(control.Conflicts, codeObserve, cannot+"quorumd only observes",
			"set mode: manage and restart quorumd")
	case v.Cluster.Listed:
		return refuse(control.Conflicts, codeClusterExists, cannot+"a cluster answers already",
			"nothing is to do: this host joins it; see quorumctl explain")
	case v.Bootstrap.Done:
		return refuse(control.Conflicts, codeClusterExists,
			cannot+"this host has belonged to cluster "+record.MemberID(v.Cluster.ExpectedID).String(),
			"bring that cluster back; an empty disk does not make a new one")
	case v.Bootstrap.Seen != 0:
		return refuse(control.Conflicts, codeClusterExists,
			cannot+"this host has seen cluster "+record.MemberID(v.Bootstrap.Seen).String()+
				", which does not answer now",
			"bring that cluster back, and this host joins it; only if it is gone for good, remove "+
				o.opt.Files.SeenPath()+" and restart quorumd")
	case v.Founding.Attempt != "" && v.Founding.First != v.Self.Name:
		return refuse(control.Conflicts, codeClusterExists,
			cannot+"this host has told "+v.Founding.First+" that it stands by the cluster which that makes",
			"see quorumctl explain for whom that waits; a host that stands by another makes none itself")
	case v.Data.State == policy.DataUnknown:
		return refuse(control.NotNow, codeNotYet,
			cannot+"the data directory has not been looked at yet: "+v.Data.Detail, "try again in a few seconds")
	case v.Data.State != policy.DataEmpty:
		return refuse(control.Conflicts, codeClusterExists, cannot+"there is data in "+o.opt.Config.Etcd.DataDir,
			"start etcd on it, or move it away if nobody needs it")
	}
	return o.nobodyElse(ctx)
}

// nobodyElse makes sure that no etcd runs at the other endpoints.
func (o *Operator) nobodyElse(ctx context.Context) error {
	err := cluster.Silent(ctx, o.opt.Etcd, o.opt.Config.Etcd.ClientURL)
	if e, is := errors.AsType[*cluster.NotSilent](err); is {
		return refuse(control.Conflicts, codeClusterExists, "cannot bootstrap: "+e.Why, e.Remedy)
	}
	return err
}
