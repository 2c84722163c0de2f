// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// calming is a mistake in what a host checks before it reports that all is quiet; its decision is right.
func calming(change func(v *policy.View)) rules { return rules{calm: change} }

// quietMistakes returns mistakes about when a host may ask less often.
func quietMistakes() []Mistake {
	return []Mistake{
		{
			Name: "idle is reported while the lock is held", breach: quietTooEarly,
			scope: of(3, 1, 0, 0),
			rules: calming(func(v *policy.View) { v.Lock.Held = false }),
		},
		{
			Name: "idle is reported before the last change has settled", breach: quietTooEarly,
			scope: of(3, 1, 0, 0),
			rules: calming(func(v *policy.View) { v.Cluster.StableFor = ages }),
		},
		{
			Name: "idle is reported while a standby is down", breach: quietTooEarly,
			scope: withStandby(1, EtcdCrash),
			rules: calming(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) {
					m.Live, m.LiveFor, m.LagKnown, m.BehindFor = true, ages, true, 0
				})
			}),
		},
		{
			Name: "idle is reported while a host operation is requested", breach: quietTooEarly,
			scope: asking(3, 0, 0),
			rules: calming(func(v *policy.View) {
				for i := range v.Hosts {
					v.Hosts[i].Wants, v.Hosts[i].InOperation = "", false
				}
			}),
		},
		{
			Name: "idle is reported while a removal is requested", breach: quietTooEarly,
			scope: removals(0, 0),
			rules: calming(func(v *policy.View) { v.Removal = nil }),
		},
		{
			Name: "idle is reported on an unhealthy host", breach: quietTooEarly,
			scope: of(3, 3, 1, HealthChange),
			rules: calming(func(v *policy.View) { v.Health.State = health.OK }),
		},
	}
}
