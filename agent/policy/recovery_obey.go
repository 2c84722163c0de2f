// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// MaxPlanAge is how old a plan may be when it is applied.
const MaxPlanAge = 24 * time.Hour

// OfferedPlan is a plan that a host is to apply.
type OfferedPlan struct {
	ID      string
	Cluster string        // its name
	Age     time.Duration // negative if this host's clock is behind
	Own     *HostRemains  // the facts of this host in the plan; nil if there are none
	Now     HostRemains   // the current facts of this host
}

// PlanRefused returns why this host does not apply a plan; empty if it does.
func PlanRefused(p OfferedPlan) string {
	for _, r := range planRefusals() {
		if text := r.check(p); text != "" {
			return text
		}
	}
	return ""
}

// planRefusal declares a reason to refuse a plan. The remedy is the same for all: collect the facts again and make
// another plan.
type planRefusal struct {
	name  string
	check func(p OfferedPlan) string
}

// planRefusals returns all reasons in the order in which they are checked: each may rely on those before it.
func planRefusals() []planRefusal {
	return []planRefusal{
		{"another cluster's plan", func(p OfferedPlan) string {
			return unless(p.Now.Cluster == p.Cluster, "it is for cluster %q, this host belongs to %q", p.Cluster,
				p.Now.Cluster)
		}},
		{"a host outside the plan", func(p OfferedPlan) string {
			return unless(p.Own != nil, "it was made without facts of %s", p.Now.Host)
		}},
		{"a quorum is seen", func(p OfferedPlan) string {
			return unless(!p.Now.Quorum, "%s sees a quorum, so there is nothing to recover", p.Now.Host)
		}},
		{"too old", func(p OfferedPlan) string {
			return unless(p.Age <= MaxPlanAge && p.Age >= -MaxClockAhead, "it was made %s ago, the limit is %s",
				durationfmt.Seconds(p.Age), durationfmt.Text(MaxPlanAge))
		}},
		{"another host", func(p OfferedPlan) string {
			return unless(p.Own.HostID == p.Now.HostID, "the facts are of %s (%s), this host is %s (%s)", p.Own.Host,
				p.Own.HostID, p.Now.Host, p.Now.HostID)
		}},
		{"another cluster's facts", func(p OfferedPlan) string {
			return unless(p.Own.Cluster == p.Now.Cluster, "the facts are of cluster %q, this host belongs to %q",
				p.Own.Cluster, p.Now.Cluster)
		}},
		{"other data", func(p OfferedPlan) string {
			same := p.Own.Empty == p.Now.Empty && p.Own.ClusterID == p.Now.ClusterID && p.Own.MemberID == p.Now.MemberID
			return unless(same, "the data directory is not the one that the facts describe")
		}},
		{"another last entry", func(p OfferedPlan) string {
			return unless(p.Own.Term == p.Now.Term && p.Own.Index == p.Now.Index,
				"the last log entry is %d of term %d, in the facts it is %d of term %d", p.Now.Index, p.Now.Term,
				p.Own.Index, p.Own.Term)
		}},
		// another host may be carrying out the other plan
		{"another plan since", func(p OfferedPlan) string {
			for _, known := range p.Now.Plans {
				before := slices.ContainsFunc(p.Own.Plans, func(t KnownPlan) bool { return t.ID == known.ID })
				if known.ID != p.ID && !before {
					return fmt.Sprintf("since its facts were collected %s received plan %s, by which %s continues "+
						"alone", p.Now.Host, known.ID, known.Survivor)
				}
			}
			return ""
		}},
	}
}

func unless(holds bool, format string, args ...any) string {
	if holds {
		return ""
	}
	return fmt.Sprintf(format, args...)
}
