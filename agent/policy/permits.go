// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/quorumd/quorumd/health"

// Permission is what a health state allows.
type Permission struct {
	Join bool // the host may become a learner, and then a voter
	Hold bool // a join that has begun may wait for a better health state
}

// Permits returns what a health state allows. Unknown neither adds a member nor rolls a join back.
func Permits(s health.State) Permission {
	switch s { //exhaustive:enforce
	case health.OK:
		return Permission{Join: true, Hold: true}
	case health.Warm, health.Unknown, health.Qualifying:
		return Permission{Hold: true}
	case health.Slow, health.Stalled, health.Failed:
		return Permission{}
	}
	return Permission{Hold: true} // a health state that this agent does not know is unknown
}

// blocks reports whether a health state blocks what a gate protects, given the gates that no finding closes. While the
// state is unknown or still being determined there are no findings, so it blocks everything.
func blocks(s health.State, ungated, what health.Gate) bool {
	switch s { //exhaustive:enforce
	case health.OK:
		return false
	case health.Warm, health.Slow, health.Stalled, health.Failed:
		return ungated&what == 0
	case health.Unknown, health.Qualifying:
	}
	return true
}

// blocks reports whether this host's health state blocks what a gate protects.
func (h Health) blocks(what health.Gate) bool { return blocks(h.State, h.Ungated, what) }

// Unhealthy reports whether a health state means that the host harms the cluster.
func Unhealthy(s health.State) bool {
	return s == health.Slow || s == health.Stalled || s == health.Failed
}
