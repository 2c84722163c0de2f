// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// hostsKept is the fleet size up to which a resting host (see pace) keeps all host records until it next reads them. In
// a larger fleet it keeps only the records it needs.
const hostsKept = 200

// lookAtEtcd reads from etcd what is due, and carries over the rest from the previous round.
func (o *Observer) lookAtEtcd(ctx context.Context, r *round.Round) {
	hurry, before := o.in.Hurry, o.before
	o.askLed(ctx, r)
	if r.Led != nil && !hurry && policy.TransfersLeadershipSoon(before.View) {
		r.ClusterState = before.ClusterState
		return
	}
	want := o.pace.due(r.At, hurry, o.in.Quiet)
	if o.in.Light && !hurry && before != nil && before.Reachable {
		want = look{etcd: true, list: true, behind: o.in.Behind}
	}
	if before == nil || want.etcd {
		o.askEtcd(ctx, r, want)
	} else {
		r.ClusterState = before.ClusterState
		r.Hosts = o.kept(before)
	}
	if want = o.pace.due(r.At, false, false); r.Reachable && r.EtcdAt == r.At && !o.in.Light && want.hosts &&
		r.HostsAt != r.At {
		o.askEtcd(ctx, r, want) // this round has shown that the queue names this host, or that the fleet is small
	}
}

// askedCalls limits how long one call of askEtcd takes, in call timeouts. Without this limit, reads that all time out
// would delay publishing this host's state and make this host act on old data.
const askedCalls = 3

// askEtcd reads from etcd, and schedules the next reads according to the result.
func (o *Observer) askEtcd(ctx context.Context, r *round.Round, want look) {
	ctx, cancel := context.WithTimeout(ctx, askedCalls*o.opt.Config.Timing.CallTimeout)
	defer cancel()
	r.ClusterState = round.ClusterState{EtcdAt: r.At}
	if old := o.reached; old != nil {
		r.Statuses, r.StatusesAt = old.Statuses, old.StatusesAt
		r.Hosts, r.HostsAt = o.kept(old), old.HostsAt
	}
	o.opt.Etcd.SetClusterID(o.clusterID(r))
	err := o.askMembers(ctx, r, want)
	if err == nil {
		r.Listed = true
		err = o.askRecords(ctx, r, want)
	}
	if err != nil { // drop a partial cluster state
		if r.Problem = err.Error(); cluster.Denied(err) {
			r.Denied, r.Problem = true, cluster.DeniedText(err, o.opt.Etcd.User(), o.keys.Prefix())
		}
		r.Hosts, r.Op, r.Lock, r.Pause, r.Queue, r.Rollout, r.Repairs = nil, nil, nil, nil, nil, nil, nil
		r.Recovered, r.Backup, r.RestoreTest, r.Size, r.Retired, r.Permits = nil, nil, nil, nil, nil, nil
		r.OpAt, r.LockAt, r.QueueAt, r.RolloutAt, r.RepairsAt, r.SizeAt, r.Unreadable = 0, 0, 0, 0, 0, 0, nil
		if !want.list { // drop the carried-over member list as well
			r.Listed, r.Membership = false, cluster.Membership{}
		}
	}
	if r.Reachable = err == nil; r.Reachable {
		o.askNames(ctx, r)
	}
	r.OldServes = recoveredElsewhere(o.opt.Config, r) && o.oldServes(ctx, r)
	if r.Reachable {
		o.pace.guide(r.At, r.Queue != nil)
	}
	switch {
	case !r.Reachable:
	case want.hosts:
		o.pace.learn(r.At, len(r.Hosts))
	case r.Queue != nil && policy.SizeClass(o.pace.size) != r.Queue.Hosts:
		o.pace.learn(r.At, r.Queue.Hosts)
	case want.count:
		o.pace.learn(r.At, max(1, r.Counted))
	}
	o.pace.asked(r.At, look{etcd: true, members: r.Reachable && want.members, hosts: r.Reachable && want.hosts})
	o.pace.attend(r.At, o.attentive(r))
}

// clusterID returns the ID of the cluster that this host belongs to. Until that ID is recorded on this host, it uses
// the cluster ID in the data directory, but only if the local etcd runs and the cluster whose members were last listed
// has the same ID. Otherwise an etcd that the distribution started, with the data of an unrelated cluster, could
// mislead this host.
func (o *Observer) clusterID(r *round.Round) uint64 {
	id := belongs(o.opt.Config, r)
	if id == 0 && o.before != nil && o.before.Data.OK && stateOfUnit(r) == policy.UnitActive &&
		o.before.Data.Value.ClusterID == o.home.ClusterID {
		return o.home.ClusterID
	}
	return id
}

// kept returns the host records to carry over to the next round.
func (o *Observer) kept(before *round.Round) []record.Host {
	if o.pace.attends || len(before.Hosts) <= hostsKept {
		return before.Hosts
	}
	c := o.opt.Config
	var out []record.Host
	for _, h := range before.Hosts {
		_, member := before.Membership.Recognize(uint64(h.MemberID), h.PeerURL)
		queued := before.Queue.Calls(h.ID)
		ours := h.ID == c.Host.ID || h.Name == c.Host.Name || h.PeerURL == c.Etcd.PeerURL
		if member || queued || ours || !h.Turn.IsZero() {
			out = append(out, h)
		}
	}
	return out
}

// askMembers reads the member list and asks every member for its status, each only if wanted. A list that is not read
// is carried over.
func (o *Observer) askMembers(ctx context.Context, r *round.Round, want look) error {
	if !want.list && o.reached != nil {
		r.Membership = o.reached.Membership
		return nil
	}
	patience := time.Duration(listPatience(r)) * o.opt.Config.Timing.CallTimeout
	listCtx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	list, err := o.opt.Etcd.Members(listCtx)
	switch {
	case cluster.Denied(err):
		return err
	case err != nil && r.Led != nil:
		r.Answers = round.Answers{Membership: r.Led.Membership, Of: r.Led.Statuses}
		return o.slowRead(err)
	case err != nil:
		if why := o.askSurvivors(ctx, r); why != nil {
			return why
		}
		return o.explain(ctx, err)
	}
	r.Membership = list
	if !want.members {
		return nil
	}
	asked := slices.Clone(list.Members)
	for i, m := range asked {
		if slices.Contains(m.PeerURLs, o.opt.Config.Etcd.PeerURL) && len(m.ClientURLs) == 0 && o.before != nil &&
			stateOfUnit(o.before) == policy.UnitActive {
			// this host's member has not published its client URL yet
			asked[i].ClientURLs = []string{o.opt.Config.Etcd.ClientURL}
		}
	}
	r.Statuses, r.StatusesAt = o.opt.Etcd.Statuses(ctx, asked), r.At
	return nil
}

// askRecords reads quorumd's records at one revision: all of them, or all except the host records that this host does
// not need.
func (o *Observer) askRecords(ctx context.Context, r *round.Round, want look) error {
	patience := time.Duration(listPatience(r)) * o.opt.Config.Timing.CallTimeout
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found, err := o.opt.Etcd.Read(ctx, o.spans(want)...)
	if err == nil {
		r.Counted = found.Counted
		o.parseRecords(r, found, want)
	}
	return err
}
