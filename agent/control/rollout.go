// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "time"

// The states of a Rollout.
const (
	RolloutRunning = "running"
	RolloutPaused  = "paused"  // no further host begins, until it runs again
	RolloutAborted = "aborted" // by a person: no further host begins
	RolloutStopped = "stopped" // by itself, because a host did not come back; its Text says why
	RolloutDone    = "done"
)

// The states of a RolloutHost.
const (
	RolloutHostWaiting = "waiting"
	RolloutHostCurrent = "current" // its turn, or on its way to it
	RolloutHostDone    = "done"
	RolloutHostSkipped = "skipped" // it is as the rollout wants it already
)

// MaxRolloutHosts bounds how many hosts a request may name.
const MaxRolloutHosts = 1000

// RolloutRequest asks for one host after another to be restarted or rebooted.
type RolloutRequest struct {
	Work    string   // WorkRestart or WorkReboot
	Hosts   []string // names or IDs; empty for all that are present
	Version string   // until etcd reports this version: hosts that do already are skipped; empty for all
	Reason  string   // required, one line
}

// Rollout is one host after another being restarted or rebooted.
type Rollout struct {
	ID      string        `json:"id"`
	Work    string        `json:"work"`
	Version string        `json:"version,omitempty"`
	Reason  string        `json:"reason"`
	By      string        `json:"by"`
	State   string        `json:"state"`
	Text    string        `json:"text,omitempty"` // why it stopped
	Started time.Time     `json:"started"`
	Hosts   []RolloutHost `json:"hosts"`
}

// RolloutHost is how far a rollout is with one host.
type RolloutHost struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	State   string  `json:"state"`
	Seconds float64 `json:"seconds,omitempty"` // how long it took, when it is done
}

// complete gives a list that is absent as an empty one.
func (r Rollout) complete() Rollout {
	r.Hosts = orEmpty(r.Hosts)
	return r
}
