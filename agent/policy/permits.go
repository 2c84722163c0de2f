// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/quorumd/quorumd/health"

// Permission is what a health state allows a host to be.
type Permission struct {
	Join bool // may become a learner, and then a voter
	Hold bool // a join that has begun may keep waiting
}

// Permits returns what each health state allows. Unknown neither adds a member nor rolls one back.
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

// gates reports whether a health state blocks something. One that is unknown or still being determined has no findings
// that could spare it.
func blocks(s health.State, spares, what health.Gate) bool {
	switch s { //exhaustive:enforce
	case health.OK:
		return false
	case health.Warm, health.Slow, health.Stalled, health.Failed:
		return spares&what == 0
	case health.Unknown, health.Qualifying:
	}
	return true
}

// gates reports whether this host's health state blocks something.
func (h Health) blocks(what health.Gate) bool { return blocks(h.State, h.Ungated, what) }

// Unhealthy reports whether a health state means that the host harms the cluster.
func Unhealthy(s health.State) bool {
	return s == health.Slow || s == health.Stalled || s == health.Failed
}
