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
	// mostRenewals is how many hosts without a member are asked about. In a larger fleet only their records show when
	// they were last seen.
	mostRenewals = 16
	// renewalsPerTTL is how often etcd is asked within the lifetime of a record.
	renewalsPerTTL = 4
)

// lookAtRenewals asks etcd, in the background, for how long the hosts without a member have not renewed their records:
// no silent member shows that such a host is gone. A resting host asks nothing.
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
				if err == nil { // else its record is gone in the next round, or has another lease
					since[id] = age
				}
			}
			return since, nil
		})
	r.Renewals = found(&o.renewed, r.At, maxAge*every)
}
