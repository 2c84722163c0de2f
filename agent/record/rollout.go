// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"math"
	"slices"
	"strings"
	"time"
)

// Rollout takes down one host after another for the same work. Each host reads the record to learn whether it is next,
// and records that it is done in the transaction that ends its operation.
type Rollout struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
	Work    string `json:"work"`              // restart, reboot, command, readdress or defrag
	Command string `json:"command,omitempty"` // the name of a program that every host has
	Etcd    string `json:"etcd,omitempty"`    // the version that etcd must report after the work; empty: any
	Bare    bool   `json:"withoutSnapshot,omitempty"`
	// the rollout will pause before the last member with an older minor version
	Hold bool `json:"hold,omitempty"`
	// the rollout raises the cluster version, so afterwards no member can be rolled back
	Raises bool `json:"raises,omitempty"`
	// the rollout lowers the cluster version to the minor version of Etcd
	Downgrade bool `json:"downgrade,omitempty"`
	// quorumd is about to enable, or has enabled, etcd's downgrade job for this rollout, and has not cancelled it
	DowngradeJob bool      `json:"downgradeJob,omitempty"`
	Reason       string    `json:"reason" bound:"text"`
	By           string    `json:"by"`
	State        string    `json:"state"`
	Text         string    `json:"text,omitempty" bound:"text"` // why the rollout is in that state
	Started      time.Time `json:"started"`
	Since        time.Time `json:"since,omitzero"` // when the rollout last started, resumed, or finished a host
	// Resumed is how many times an operator has resumed the rollout. A host compares the number to detect a record that
	// is older than its own operation.
	Resumed   int           `json:"resumed,omitempty"`
	ResumedAt time.Time     `json:"resumedAt,omitzero"` // when an operator last resumed the rollout
	Hosts     []RolloutHost `json:"hosts"`
	Extra     Extra         `json:"-"`
}

// RolloutHost is one host of a rollout.
type RolloutHost struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	State   string  `json:"state"`
	Seconds float64 `json:"seconds,omitempty"` // how long the host was down
	// seconds from when the previous host was done, or the rollout was started or resumed, until the host was back
	Turn float64 `json:"turn,omitempty"`
}

// The states of a rollout. Only a running one takes further hosts down.
const (
	RolloutRunning = "running"
	RolloutPaused  = "paused"  // no further host goes down until an operator resumes the rollout
	RolloutAborted = "aborted" // an operator has aborted the rollout; no further host goes down
	RolloutStopped = "stopped" // for example, the work failed, or its request was cancelled; Text is the reason
	RolloutDone    = "done"
)

// The states of a host in a rollout. The operation in flight shows which host is the current one.
const (
	HostWaiting = "waiting"
	HostDone    = "done"
	HostSkipped = "skipped" // the work is not needed on the host, for example because etcd already has the version
)

// Began returns when the rollout was started or last resumed.
func (r Rollout) Began() time.Time {
	if r.ResumedAt.After(r.Started) {
		return r.ResumedAt
	}
	return r.Started
}

// Waiting returns the IDs of the hosts that are still to come.
func (r Rollout) Waiting() []string {
	var out []string
	for _, h := range r.Hosts {
		if h.State == HostWaiting {
			out = append(out, h.ID)
		}
	}
	return out
}

// Room returns an error if the record may outgrow its bound in the worst case, in which every field has its longest
// value. Such a rollout must not start, because it could not be completed. On an error, most is the approximate number
// of hosts that would fit; otherwise it is the number of hosts in the rollout.
func (r Rollout) Room() (most int, err error) {
	largest := r
	largest.Text, largest.State = strings.Repeat("x", maxText), RolloutStopped
	largest.Since = time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	largest.ResumedAt = largest.Since
	largest.Resumed = math.MaxInt
	largest.DowngradeJob = true
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
