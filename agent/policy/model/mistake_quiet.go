// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// wrongQuietView returns a mistake in the view from which a host decides whether the cluster is quiet. All its other
// decisions use the correct view.
func wrongQuietView(change func(v *policy.View)) rules { return rules{quietView: change} }

// quietMistakes returns the mistakes about when a host may poll less often.
func quietMistakes() []Mistake {
	return []Mistake{
		{
			Name: "a host polls less often while the lock is held", breach: quietTooEarly,
			scope: clusterWith(3, 1, 0, 0),
			rules: wrongQuietView(func(v *policy.View) { v.Lock.Held = false }),
		},
		{
			Name: "a host polls less often before the last change has settled", breach: quietTooEarly,
			scope: clusterWith(3, 1, 0, 0),
			rules: wrongQuietView(func(v *policy.View) { v.Cluster.StableFor = ages }),
		},
		{
			Name: "a host polls less often while a standby is down", breach: quietTooEarly,
			scope: withStandby(1, EtcdCrash),
			rules: wrongQuietView(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) {
					m.Live, m.LiveFor, m.LagKnown, m.BehindFor = true, ages, true, 0
				})
			}),
		},
		{
			Name: "a host polls less often while a host operation is requested", breach: quietTooEarly,
			scope: oneRequest(3, 0, 0),
			rules: wrongQuietView(func(v *policy.View) {
				for i := range v.Hosts {
					v.Hosts[i].Wants, v.Hosts[i].InOperation = "", false
				}
			}),
		},
		{
			Name: "a host polls less often while a removal is requested", breach: quietTooEarly,
			scope: removals(0, 0),
			rules: wrongQuietView(func(v *policy.View) { v.Removal = nil }),
		},
		{
			Name: "an unhealthy host polls less often", breach: quietTooEarly,
			scope: clusterWith(3, 3, 1, HealthChange),
			rules: wrongQuietView(func(v *policy.View) { v.Health.State = health.OK }),
		},
	}
}
