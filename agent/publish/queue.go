// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// keepQueue writes the join queue when it changes, on the host that maintains it. That host also trims the history
// periodically.
func (p *Publisher) keepQueue(ctx context.Context, r *round.Round) {
	note := r.Decision.Notes.Queue
	if !note.Keeps || p.hostRecord.lease == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, p.opt.Config.Timing.CallTimeout)
	defer cancel()
	if r.At-p.trimmed > trimEvery {
		p.trimmed = r.At
		p.journal.Trim(ctx)
	}
	if !note.News {
		return
	}
	q := note.Queue
	value, err := record.Encode(record.Queue{Hosts: q.Hosts, Next: q.Next, Down: q.Down})
	if err == nil {
		key := p.keys.Queue()
		_, err = p.opt.Etcd.Txn(ctx, []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", r.QueueAt)},
			clientv3.OpPut(key, string(value), clientv3.WithLease(p.hostRecord.lease)))
	}
	if err != nil {
		p.log.Debug("cannot write the join queue", "error", err) // retried after the next read of all hosts
	}
}
