// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"
	"time"
)

// Repairs records the last automatic replacements of voters. It has no lease: the limit on replacements must still
// apply after agents restart.
type Repairs struct {
	Version int      `json:"version"`
	Last    []Repair `json:"last"` // newest last
	Extra   Extra    `json:"-"`
}

// Repair records a voter that was replaced, or was about to be replaced.
type Repair struct {
	Time   time.Time `json:"time"` // by the clock of the host that replaced the voter
	Host   string    `json:"host"` // ID of the host that replaced the voter
	Name   string    `json:"name"` // name of the host that replaced the voter
	Member MemberID  `json:"member"`
	Dead   string    `json:"dead,omitempty"` // name of the replaced member
	// PeerURL is the replaced member's peer URL: the host with this URL was ejected.
	PeerURL string `json:"peerURL,omitempty"`
}

// MaxRepairs is the maximum number of recorded repairs.
const MaxRepairs = 16

// remembered is how long a host's ejection counts.
const remembered = 30 * 24 * time.Hour

// Repairs returns the key of the last repairs.
func (k Keys) Repairs() string { return k.prefix + "repairs" }

// And returns the repairs with one more added, without earlier attempts on the same member. If there are too many, it
// drops the oldest.
func (r Repairs) And(one Repair) Repairs {
	again := func(other Repair) bool { return other.Member == one.Member }
	r.Last = append(slices.DeleteFunc(slices.Clone(r.Last), again), one)
	r.Last = r.Last[max(0, len(r.Last)-MaxRepairs):]
	return r
}

// Today counts the repairs of the last day. An attempt whose member is still in the member list does not count, because
// the member was not replaced. A repair from the future counts too, because hosts' clocks may differ.
func (r *Repairs) Today(now time.Time, listed func(MemberID) bool) int {
	n := 0
	for i := 0; r != nil && i < len(r.Last); i++ {
		if now.Sub(r.Last[i].Time) < 24*time.Hour && !listed(r.Last[i].Member) {
			n++
		}
	}
	return n
}

// Ejections returns how many times the host with that name or peer URL was ejected in the last 30 days, and the record
// of the last ejection. The name identifies a host whose peer URL has changed, and the URL one whose member has a
// different name. An attempt that did not remove the member counts too. Its only effect is that the host waits longer
// if an operator removes the member.
func (r *Repairs) Ejections(name, peerURL string, now time.Time) (times int, last Repair) {
	for i := 0; r != nil && i < len(r.Last); i++ {
		one := r.Last[i]
		same := name != "" && one.Dead == name || peerURL != "" && one.PeerURL == peerURL
		if same && now.Sub(one.Time) < remembered {
			times, last = times+1, one
		}
	}
	return times, last
}
