// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"
	"time"
)

// Repairs are the last voters that were replaced without a person. It has no lease: an agent that starts anew must not
// replace as many again.
type Repairs struct {
	Version int      `json:"version"`
	Last    []Repair `json:"last"` // the youngest at the end
	Extra   Extra    `json:"-"`
}

// Repair is a voter that was replaced, or was about to be.
type Repair struct {
	Time   time.Time `json:"time"` // of the host that replaced it
	Host   string    `json:"host"` // the ID of that host
	Name   string    `json:"name"` // of the host that replaced it
	Member MemberID  `json:"member"`
	Dead   string    `json:"dead,omitempty"` // the name of that member
	// PeerURL is where that member was reached by the others: the host that has it for its own was taken out.
	PeerURL string `json:"peerURL,omitempty"`
}

// MaxRepairs bounds the repairs that are remembered.
const MaxRepairs = 16

// remembered is for how long it counts that a host was taken out.
const remembered = 30 * 24 * time.Hour

// Repairs is the key of the last repairs.
func (k Keys) Repairs() string { return k.prefix + "repairs" }

// And gives the repairs with one more. The oldest are forgotten, and of the same member every earlier try.
func (r Repairs) And(one Repair) Repairs {
	again := func(other Repair) bool { return other.Member == one.Member }
	r.Last = append(slices.DeleteFunc(slices.Clone(r.Last), again), one)
	r.Last = r.Last[max(0, len(r.Last)-MaxRepairs):]
	return r
}

// Today counts those of a day. A member that is in the list was not replaced: that was a try, which was given up.
// Hosts' clocks may differ: one that seems yet to come counts, too.
func (r *Repairs) Today(now time.Time, listed func(MemberID) bool) int {
	n := 0
	for i := 0; r != nil && i < len(r.Last); i++ {
		if now.Sub(r.Last[i].Time) < 24*time.Hour && !listed(r.Last[i].Member) {
			n++
		}
	}
	return n
}

// Ejections counts how often the host with that peer URL was taken out in the last 30 days, and gives the last time.
// One that was not removed after all counts, too, which costs its host a wait if a person takes it out.
func (r *Repairs) Ejections(peerURL string, now time.Time) (times int, last Repair) {
	for i := 0; r != nil && peerURL != "" && i < len(r.Last); i++ {
		if one := r.Last[i]; one.PeerURL == peerURL && now.Sub(one.Time) < remembered {
			times, last = times+1, one
		}
	}
	return times, last
}
