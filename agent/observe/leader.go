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

// A linearizable read waits for the leader's disk. If that is far too slow, no read completes in time on any host, and
// the leader's own agent would see no cluster in which to transfer leadership. What its own member reports needs no
// such read: that it leads, and its data, which is current as long as a quorum follows it.

// askLed asks this host's member whether it leads although it should not, and then for the records; and every other
// member whether it follows. It takes at most two calls, and one if every member answers or refuses.
func (o *Observer) askLed(ctx context.Context, r *round.Round) {
	if o.before == nil || o.reached == nil || !policy.UnfitToLead(o.before.View.Health) {
		return
	}
	list, c := o.reached.Membership, o.opt.Config
	own, listed := list.ByPeerURL(c.Etcd.PeerURL)
	if !listed || own.Learner || len(own.ClientURLs) == 0 {
		return
	}
	ask, cancel := context.WithTimeout(ctx, c.Timing.CallTimeout)
	said := o.opt.Etcd.Answers(ask, list.Members)
	cancel()
	word := said[own.ID]
	if word.Err != nil || word.MemberID != own.ID || word.Leader != own.ID || word.ClusterID != list.ClusterID {
		return
	}
	ctx, cancel = context.WithTimeout(ctx, c.Timing.CallTimeout)
	defer cancel()
	found, err := o.opt.Etcd.ReadAt(ctx, own.ClientURLs[0], o.spans(look{hosts: true})...)
	if err != nil {
		o.log.Debug("cannot read the keys and watches of the own leader", "error", err)
		return
	}
	led := *r
	led.ClusterState = round.ClusterState{
		EtcdAt: r.At, Reachable: true, Listed: true, By: own.ID, Membership: list, Statuses: said, StatusesAt: r.At,
	}
	o.parseRecords(&led, found, look{hosts: true})
	r.Led = &led.ClusterState
}

// spans returns the key ranges to read of quorumd's own records.
func (o *Observer) spans(want look) (spans []cluster.Span) {
	for _, key := range o.keys.Cluster() {
		spans = append(spans, cluster.Span{Start: key})
	}
	spans = append(spans, cluster.Span{Start: o.keys.Releases(), End: o.keys.ReleasesEnd()})
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

// listPatience returns how many calls the member list may take. Every member gets it through the leader: if the leader
// is this host's member and too slow, no other member has it sooner.
func listPatience(r *round.Round) int {
	if r.Led != nil {
		return 1
	}
	return 2
}

// slowRead returns the error of a read through this host's own member, which leads.
func (o *Observer) slowRead(err error) error {
	return fmt.Errorf("this host's member leads, and a linearizable read takes longer than %s: %w",
		durationfmt.Text(o.opt.Config.Timing.CallTimeout), err)
}

// leader returns the view by what this host's own member reported; nil if that was not asked, or does not lead. Its
// durations count only such rounds.
func (b *Builder) leader(v *policy.View, r *round.Round) *policy.View {
	if r.Led == nil {
		if r.At-b.ledAt > round.Blink*b.config.Timing.Interval {
			b.led = nil // its durations started at another time
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
