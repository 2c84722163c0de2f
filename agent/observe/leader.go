// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// A linearizable read waits for the leader's disk. If that disk is far too slow, no read completes in time on any host,
// and the leader's own agent could not transfer leadership, because it would find the cluster unreachable. The agent
// can still ask its own member without such a read: for its status, which shows that the member leads, and for its
// data, which are current as long as a quorum follows this member.

// askLed asks every member for its status if this host is unfit to lead. If this host's member leads nevertheless,
// askLed also reads the records from it. It takes at most two call timeouts, and one if every member answers or
// refuses.
func (o *Observer) askLed(ctx context.Context, r *round.Round) {
	if o.before == nil || o.reached == nil || !policy.UnfitToLead(o.before.View.Health) {
		return
	}
	list, c := o.reached.Membership, o.opt.Config
	own, listed := r.OwnMember(list, c.Etcd.PeerURL)
	if !listed || own.Learner || len(own.ClientURLs) == 0 {
		return
	}
	ask, cancel := context.WithTimeout(ctx, c.Timing.CallTimeout)
	answers := o.opt.Etcd.Answers(ask, list.Members)
	cancel()
	status := answers[own.ID]
	if status.Err != nil || status.MemberID != own.ID || status.Leader != own.ID || status.ClusterID != list.ClusterID {
		return
	}
	ctx, cancel = context.WithTimeout(ctx, c.Timing.CallTimeout)
	defer cancel()
	found, err := o.opt.Etcd.ReadAt(ctx, own.ClientURLs[0], o.spans(look{hosts: true})...)
	if err != nil {
		o.log.Debug("cannot read the records from this host's leading member", "error", err)
		return
	}
	led := *r
	led.ClusterState = round.ClusterState{
		EtcdAt: r.At, Reachable: true, Listed: true, By: own.ID, Membership: list, Statuses: answers, StatusesAt: r.At,
	}
	o.parseRecords(&led, found, look{hosts: true})
	r.Led = &led.ClusterState
}

// spans returns the key ranges of the quorumd records to read.
func (o *Observer) spans(want look) (spans []cluster.Span) {
	for _, key := range o.keys.Cluster() {
		spans = append(spans, cluster.Span{Start: key})
	}
	spans = append(spans, cluster.Span{Start: o.keys.Releases(), End: o.keys.ReleasesEnd()},
		cluster.Span{Start: o.keys.Retirements(), End: o.keys.RetirementsEnd()})
	if want.hosts {
		spans = append(spans, cluster.Span{Start: o.keys.Hosts(), End: o.keys.Lock()})
	} else {
		spans = append(spans, cluster.Span{Start: o.keys.Host(o.opt.Config.Host.ID)})
		for _, id := range want.behind {
			spans = append(spans, cluster.Span{Start: o.keys.Host(id)})
		}
	}
	if want.count {
		spans = append(spans, cluster.Span{Start: o.keys.Hosts(), End: o.keys.Lock(), Count: true})
	}
	return spans
}

// listPatience returns the time limit for reading the member list, in call timeouts. Every member reads the list
// through the leader. If this host's member leads and is too slow, no other member returns the list sooner.
func listPatience(r *round.Round) int {
	if r.Led != nil {
		return 1
	}
	return 2
}

// slowRead returns the error for a read that failed because this host's own member leads and is too slow.
func (o *Observer) slowRead(err error) error {
	return fmt.Errorf("this host's member leads, and a linearizable read takes longer than %s: %w",
		durationfmt.Text(o.opt.Config.Timing.CallTimeout), err)
}

// leader returns the view derived from the reports of this host's own member. It returns nil if that member was not
// asked or does not lead. Durations in this view count only rounds in which it was asked and led.
func (b *Builder) leader(v *policy.View, r *round.Round) *policy.View {
	if r.Led == nil {
		if r.At-b.ledAt > round.Blink*b.config.Timing.Interval {
			b.led = nil // the durations in this view were interrupted: start over
		}
		return nil
	}
	b.ledAt = r.At
	if b.led == nil {
		b.led = NewBuilder(b.config, b.bootID, b.instance, b.programs)
	}
	own := *r
	own.ClusterState, own.Led = *r.Led, nil
	led := b.led.View(&own, nil)
	led.LeadershipTransfers, led.Cluster.Led, led.Cluster.Unread = v.LeadershipTransfers, true, !r.Reachable
	return &led
}
