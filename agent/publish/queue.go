// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// QueueLength is how many spares are called: one that goes, one that makes the number of voters odd
// again if it must be, and one in reserve.
const QueueLength = 3

// DownLength is how many hosts without a member are called that wait to be taken down: the next, and one in
// reserve.
const DownLength = 2

// trimEvery is how often the history is trimmed while nobody ends an operation.
const trimEvery = 10 * time.Minute

// keepQueue writes the queue when it has changed. The first voter whose agent is present keeps it;
// two that both take themselves for the first do no harm, since the queue only says who looks.
func (p *Publisher) keepQueue(ctx context.Context, r *round.Round) {
	if r.HostsAt != r.At || p.presence.lease == 0 || !p.keepsQueue(r) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, p.opt.Config.Timing.CallTimeout)
	defer cancel()
	if r.At-p.trimmed > trimEvery {
		p.trimmed = r.At
		p.journal.Trim(ctx)
	}
	q, changed := nextQueue(r)
	if !changed {
		return
	}
	value, err := record.Encode(q)
	if err == nil {
		key := p.keys.Queue()
		_, err = p.opt.Etcd.Txn(ctx, []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", r.QueueAt)},
			clientv3.OpPut(key, string(value), clientv3.WithLease(p.presence.lease)))
	}
	if err != nil {
		p.log.Debug("queue not written", "error", err) // it is tried again when the hosts are looked at next
	}
}

// keepsQueue tells whether this is the first voter, by host ID, whose agent is present.
func (p *Publisher) keepsQueue(r *round.Round) bool {
	if r.Decision.Role != policy.RoleVoter || r.View.Self.Conflict != "" {
		return false
	}
	for _, h := range r.Hosts { // by ID
		if h.Role == string(policy.RoleVoter) {
			return h.ID == p.opt.Config.Host.ID
		}
	}
	return false
}

// nextQueue gives the queue as it should be, and whether that is news. While a voter does not answer
// nobody can join, and those that are called say so and count as not ready: calling others then would
// go through the whole fleet.
func nextQueue(r *round.Round) (record.Queue, bool) {
	q := record.Queue{Hosts: record.SizeClass(len(r.Hosts)), Next: policy.Next(r.View, QueueLength)}
	var waiting []string
	if r.Rollout != nil && r.Rollout.State == record.RolloutRunning {
		waiting = r.Rollout.Waiting()
	}
	q.Down = policy.NextDown(r.View, waiting, DownLength)
	if r.Queue == nil {
		return q, true
	}
	if n := len(r.Hosts); n <= r.Queue.Hosts && n > r.Queue.Hosts/4 {
		q.Hosts = r.Queue.Hosts // it does not change with every host that comes or goes
	}
	if voters, live := r.View.Cluster.Counts(); live < voters {
		q.Next = r.Queue.Next
	}
	return q, q.Hosts != r.Queue.Hosts || !slices.Equal(q.Next, r.Queue.Next) || !slices.Equal(q.Down, r.Queue.Down)
}
