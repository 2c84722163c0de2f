// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"math"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// metricsEvery is how often the local etcd is asked for what it tells of itself.
const metricsEvery = 30 * time.Second

// local gives what the etcd of this host has told last of itself, and what its members have in their statuses.
func (j *judge) local(ctx context.Context, r *round.Round) health.EtcdReading {
	unit := stateOfUnit(r)
	if unit != policy.UnitActive && unit != policy.UnitUnknown {
		j.etcd.Forget() // the next one counts from zero
		return health.SilentEtcd("etcd does not run here")
	}
	seen := j.metrics(ctx)
	seen.Alarms, seen.OwnSize, seen.SmallestSize = health.Figure{}, health.Figure{}, health.Figure{}
	own, listed := r.Membership.ByPeerURL(j.opt.Config.Etcd.PeerURL)
	if s, answered := answer(r.Statuses, own.ID); listed && answered {
		seen.Errors, seen.Alarms = s.Errors, known(float64(len(s.Errors)))
		seen.OwnSize, seen.SmallestSize = known(float64(s.DBSize)), smallest(r, own.ID)
	}
	return seen
}

// metrics asks the etcd of this host for its metrics, beside the loop, and gives what was seen last.
func (j *judge) metrics(ctx context.Context) health.EtcdReading {
	if j.opt.EtcdMetrics == nil {
		return health.EtcdReading{}
	}
	j.etcd.Refresh(ctx, j.opt.Now, metricsEvery, lookTimeout, func(ctx context.Context) (health.EtcdReading, error) {
		at := j.now()
		seen := j.opt.EtcdMetrics(ctx)
		seen.At = at
		return seen, nil
	})
	now := j.opt.Now()
	seen, _, fresh := j.etcd.Get(now, maxAge*metricsEvery)
	if !fresh && j.etcd.Age(now) < math.MaxInt64 {
		return health.SilentEtcd("etcd has not answered for a while")
	}
	return seen
}

// smallest is the size of the smallest database of another voter.
func smallest(r *round.Round, own uint64) health.Figure {
	least := health.Figure{Absent: "no other voter tells the size of its database"}
	for _, m := range r.Membership.Members {
		s, answered := answer(r.Statuses, m.ID)
		if size := known(float64(s.DBSize)); answered && m.ID != own && !m.Learner &&
			(!least.Known || size.Value < least.Value) {
			least = size
		}
	}
	return least
}

// answer gives the status of a member, and false when it has not told one that can be.
func answer(all map[uint64]cluster.Status, id uint64) (cluster.Status, bool) {
	s, asked := all[id]
	return s, asked && s.Err == nil && s.MemberID == id && s.DBSize >= 0
}

func known(value float64) health.Figure { return health.Figure{Value: value, Known: true} }
