// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"maps"
	"time"

	"github.com/quorumd/quorumd/agent/round"
)

const (
	// mostRenewals limits the number of hosts without a member whose lease renewals are read. With more such hosts,
	// only their records show when they were last seen.
	mostRenewals = 16
	// renewalsPerTTL is how many times the renewals are read within the TTL of a record.
	renewalsPerTTL = 4
)

// lookAtRenewals reads from etcd, in the background, how long ago the hosts without a member renewed their records. For
// a host without a member, only a missing renewal shows that it is gone. A resting host (see pace) reads nothing.
func (o *Observer) lookAtRenewals(ctx context.Context, r *round.Round) {
	if o.opt.SinceRenewal == nil || !o.pace.attends || !r.Reachable {
		return
	}
	asked, present := map[string]int64{}, map[string]bool{}
	for _, h := range r.Hosts {
		present[h.ID] = true
		if lease := o.leases[h.ID]; h.MemberID == 0 && h.ID != o.opt.Config.Host.ID && lease != 0 {
			asked[h.ID] = lease
		}
	}
	maps.DeleteFunc(o.leases, func(id string, _ int64) bool { return !present[id] })
	if len(asked) == 0 || len(asked) > mostRenewals {
		return
	}
	every := o.opt.Config.Timing.HostRecordTTL / renewalsPerTTL
	o.renewed.Refresh(ctx, o.opt.Now, every, o.opt.Config.Timing.CallTimeout,
		func(ctx context.Context) (map[string]time.Duration, error) {
			since := map[string]time.Duration{}
			for id, lease := range asked {
				age, err := o.opt.SinceRenewal(ctx, lease)
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				if err == nil { // on an error, the next round shows that the record is gone or has a different lease
					since[id] = age
				}
			}
			return since, nil
		})
	r.Renewals = found(&o.renewed, r.At, maxAge*every)
}
