// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/coreos/go-semver/semver"
)

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

// RolloutRequest asks for one host after another to be restarted or rebooted, or to run a command while it is down.
type RolloutRequest struct {
	Work    string   // WorkRestart, WorkReboot or WorkCommand
	Command string   // of WorkCommand: the name of the program in commands.d, beside the hooks
	Hosts   []string // names or IDs; empty for all that are present
	Version string   // until etcd reports this version: hosts that do already are skipped; empty for all
	Reason  string   // required, one line

	WithoutSnapshot bool // with a Version: no snapshot is waited for before the first host
}

// Rollout is one host after another being taken down for the same work.
type Rollout struct {
	ID      string        `json:"id"`
	Work    string        `json:"work"`
	Command string        `json:"command,omitempty"` // the name of the program
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
	// TurnSeconds is how long the rollout was at it, when it is done: with the pause after the host before, which
	// Seconds leaves out.
	TurnSeconds float64 `json:"turnSeconds,omitempty"`
}

// complete gives a list that is absent as an empty one.
func (r Rollout) complete() Rollout {
	r.Hosts = orEmpty(r.Hosts)
	return r
}

// The bodies on the wire.
type (
	rolloutBody struct {
		Work    string   `json:"work"`
		Command string   `json:"command,omitempty"`
		Hosts   []string `json:"hosts,omitempty"`
		Version string   `json:"version,omitempty"`
		Reason  string   `json:"reason"`

		WithoutSnapshot bool `json:"withoutSnapshot,omitempty"`
	}
	rolloutStateBody struct {
		State string `json:"state"`
	}
)

const (
	rolloutHint      = `send {"work": "restart", "reason": "<why>"}`
	rolloutStateHint = `send {"state": "paused"}`
)

func (b rolloutBody) request() (RolloutRequest, error) {
	const what = "cannot start the rollout"
	if b.Work != WorkRestart && b.Work != WorkReboot && b.Work != WorkCommand {
		return RolloutRequest{}, badRequest(rolloutHint, "%s: work: %q is not one of %s, %s and %s", what,
			shorten(b.Work), WorkRestart, WorkReboot, WorkCommand)
	}
	if err := checkCommand(b.Work, b.Command, what); err != nil {
		return RolloutRequest{}, err
	}
	reason, err := oneLine(b.Reason, what)
	if err != nil {
		return RolloutRequest{}, err
	}
	if len(b.Hosts) > MaxRolloutHosts {
		return RolloutRequest{}, badRequest("leave hosts out for all of them", "%s: %d hosts, at most %d can be named",
			what, len(b.Hosts), MaxRolloutHosts)
	}
	for i, name := range b.Hosts {
		if name == "" || slices.Contains(b.Hosts[:i], name) || strings.ContainsFunc(name, func(r rune) bool {
			return !unicode.IsPrint(r)
		}) {
			return RolloutRequest{}, badRequest("name every host once, as quorumctl status shows it",
				"%s: hosts: %q is empty, named twice or no name", what, shorten(name))
		}
	}
	version := strings.TrimPrefix(b.Version, "v")
	if version != "" {
		if _, err := semver.NewVersion(version); err != nil {
			return RolloutRequest{}, badRequest("write it as etcd reports it, such as 3.6.12",
				"%s: version: %q is not a version", what, shorten(b.Version))
		}
	}
	return RolloutRequest{
		Work: b.Work, Command: b.Command, Hosts: b.Hosts, Version: version, Reason: reason,
		WithoutSnapshot: b.WithoutSnapshot,
	}, nil
}

func (b rolloutStateBody) state() (string, error) {
	switch b.State {
	case RolloutRunning, RolloutPaused, RolloutAborted:
		return b.State, nil
	}
	return "", badRequest(rolloutStateHint, "cannot change the rollout: state: %q is not one of %s, %s and %s",
		shorten(b.State), RolloutRunning, RolloutPaused, RolloutAborted)
}
