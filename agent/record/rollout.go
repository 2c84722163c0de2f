// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"math"
	"slices"
	"strings"
	"time"
)

// Rollout is one host after another wanting to be taken down for the same work. Each host reads from it
// when its turn is, and writes that it is done in the transaction that ends its operation.
type Rollout struct {
	Version int       `json:"version"`
	ID      string    `json:"id"`
	Work    string    `json:"work"`              // restart, reboot or command
	Command string    `json:"command,omitempty"` // the name of a program that lies on every host
	Etcd    string    `json:"etcd,omitempty"`    // the version that etcd shall report afterwards; empty: any
	Bare    bool      `json:"withoutSnapshot,omitempty"`
	Reason  string    `json:"reason" bound:"text"`
	By      string    `json:"by"`
	State   string    `json:"state"`
	Text    string    `json:"text,omitempty" bound:"text"` // why it is in that state
	Started time.Time `json:"started"`
	Since   time.Time `json:"since,omitzero"` // when it last began, went on, or had done with a host
	// Resumed counts how often a person has let it go on, and nothing else does: a host knows by it whether a record is
	// older than its own turn.
	Resumed int           `json:"resumed,omitempty"`
	Hosts   []RolloutHost `json:"hosts"`
	Extra   Extra         `json:"-"`
}

// RolloutHost is one host of a rollout.
type RolloutHost struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	State   string  `json:"state"`
	Seconds float64 `json:"seconds,omitempty"` // how long it was taken down for
	// seconds from when the rollout had come to it until it was back: with the pause before
	Turn float64 `json:"turn,omitempty"`
}

// The states of a rollout. Only one that runs takes further hosts.
const (
	RolloutRunning = "running"
	RolloutPaused  = "paused"
	RolloutAborted = "aborted"
	RolloutStopped = "stopped"
	RolloutDone    = "done"
)

// The states of a host in a rollout. That it is the current one is seen from the operation in flight.
const (
	HostWaiting = "waiting"
	HostDone    = "done"
	HostSkipped = "skipped"
)

// Waiting gives the IDs of the hosts whose turn has not come.
func (r Rollout) Waiting() []string {
	var out []string
	for _, h := range r.Hosts {
		if h.State == HostWaiting {
			out = append(out, h.ID)
		}
	}
	return out
}

// Room tells whether all that can still happen to a rollout can be written into its record: every host done, after the
// longest time, and stopped with the longest text. A rollout without that room is not to be started: it would end
// half-way. most is about how many such hosts have room.
func (r Rollout) Room() (most int, err error) {
	largest := r
	largest.Text, largest.State = strings.Repeat("x", maxText), RolloutStopped
	largest.Since = time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	largest.Resumed = math.MaxInt
	largest.Hosts = slices.Clone(r.Hosts)
	for i := range largest.Hosts {
		h := &largest.Hosts[i]
		h.State, h.Seconds, h.Turn = HostWaiting, maxSeconds-1/hundredths, maxSeconds-1/hundredths
	}
	if _, err = Encode(largest); err == nil {
		return len(r.Hosts), nil
	}
	if len(r.Hosts) == 0 {
		return 0, err
	}
	hosts, hostsErr := compact(largest.Hosts)
	largest.Hosts = nil
	rest, restErr := Encode(largest)
	if hostsErr != nil || restErr != nil {
		return 0, err
	}
	room := (MaxRolloutBytes - len(rest)) * len(r.Hosts) / len(hosts)
	return min(room, MaxHosts), err
}
