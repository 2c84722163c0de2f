// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// RetiredOf returns a retired host as an API value. The members and the operation in the view determine its state.
func RetiredOf(v policy.View, retired round.Retired) control.Retired {
	out := control.Retired{
		ID: retired.Host, Name: retired.Name, PeerURL: retired.PeerURL, By: retired.By, Reason: retired.Reason,
		Since: retired.Since, Successor: retired.Successor.Name,
	}
	for _, m := range v.Cluster.Members {
		switch {
		case !v.Owns(retired.Policy(), m):
		case m.Learner:
			out.Member = control.RoleLearner
		default:
			out.Member = policy.RoleVoter
		}
	}
	switch {
	case retired.Unreadable:
		out.State = control.RetiredUnreadable
	case out.Member != "" || v.Op != nil && v.Op.Host == retired.Host:
		out.State = control.RetiredLeaves
	default:
		out.State = control.RetiredLeft
	}
	return out
}

// RetiredHosts returns the hosts that were retired when etcd was last read, sorted by ID.
func RetiredHosts(r *round.Round) []control.Retired {
	var out []control.Retired
	for _, retired := range r.Retired {
		out = append(out, RetiredOf(r.View, retired))
	}
	return out
}

// RetirementOf returns the retirement of a host with the remaining steps.
func RetirementOf(v policy.View, retired round.Retired) control.Retirement {
	voters, live := v.Cluster.Counts()
	return control.Retirement{
		Host: RetiredOf(v, retired), Voters: voters, FaultTolerance: policy.Tolerance(voters, live),
		Steps: policy.RetirePlan(v, retired.Host, retired.Successor),
	}
}
