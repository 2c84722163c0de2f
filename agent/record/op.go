// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

import "time"

// Op is the operation in flight; there is at most one. It has no lease, so it survives while its host is down.
type Op struct {
	Version  int    `json:"version"`
	Kind     string `json:"kind"`
	Host     string `json:"host"` // the host that is operated on, or that received the request to remove a member
	HostName string `json:"hostName"`
	// the role that a join or a replacement leads to; for a removal, the member's name
	Target string `json:"target,omitempty"`
	// the work of a cycle: maintenance, restart, reboot, command, readdress or defrag
	Work     string    `json:"work,omitempty"`
	Phase    string    `json:"phase"`
	Token    int64     `json:"token"` // create revision of the lock under which the operation was last advanced
	BootID   string    `json:"bootID,omitempty"`
	MemberID MemberID  `json:"memberID,omitempty"`
	Replaces MemberID  `json:"replaces,omitempty"` // the member that a replacement replaces
	PeerURL  string    `json:"peerURL,omitempty"`
	Started  time.Time `json:"started"`
	// when a cycle becomes overdue; the other hosts need this time if the operation's host is silent
	Until time.Time `json:"until,omitzero"`
	// the operation's host calls the work off and returns if the cluster needs its vote
	Interruptible bool `json:"interruptible,omitempty"`
	// the time since boot of the operation's host when the operation started; valid for BootID only
	Clock   time.Duration `json:"clock,omitempty"`
	Reason  string        `json:"reason,omitempty" bound:"text"`
	Outcome string        `json:"outcome,omitempty"` // if the operation is rolled back, the end code
	By      string        `json:"by,omitempty"`
	Extra   Extra         `json:"-"`
}
