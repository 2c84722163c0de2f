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
	RolloutPaused  = "paused"  // no further host begins until it is resumed
	RolloutAborted = "aborted" // by an operator: no further host begins
	RolloutStopped = "stopped" // by itself, because a host did not come back; Text is the reason
	RolloutDone    = "done"
)

// The states of a RolloutHost.
const (
	RolloutHostWaiting = "waiting"
	RolloutHostCurrent = "current" // its operation is in flight or next
	RolloutHostDone    = "done"
	RolloutHostSkipped = "skipped" // it is already as the rollout wants it
)

// MaxRolloutHosts is the most hosts that a request may name.
const MaxRolloutHosts = 1000

// RolloutRequest requests that one host after another be restarted, rebooted, or taken down for a command.
type RolloutRequest struct {
	Work    string   // WorkRestart, WorkReboot or WorkCommand
	Command string   // with WorkCommand: the name of the program in commands.d of the hooks directory
	Hosts   []string // names or IDs; empty for all present hosts
	Version string   // until etcd reports this version: hosts that already do are skipped; empty for all
	Reason  string   // required, one line

	WithoutSnapshot bool // with a Version: do not wait for a snapshot before the first host
	DryRun          bool // only check the request, and return the rollout that would start
}

// Rollout takes one host after another down for the same work.
type Rollout struct {
	ID      string        `json:"id"`
	Work    string        `json:"work"`
	Command string        `json:"command,omitempty"` // name of the program
	Version string        `json:"version,omitempty"`
	Reason  string        `json:"reason"`
	By      string        `json:"by"`
	State   string        `json:"state"`
	Text    string        `json:"text,omitempty"` // why it stopped
	Started time.Time     `json:"started"`
	Hosts   []RolloutHost `json:"hosts"`
	DryRun  bool          `json:"dryRun,omitempty"` // nothing was started
}

// RolloutHost is the progress of a rollout on one host.
type RolloutHost struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	State   string  `json:"state"`
	Seconds float64 `json:"seconds,omitempty"` // duration once it is done
	// TurnSeconds is how long the rollout took for this host once it is done. Unlike Seconds, it includes the pause
	// after the previous host.
	TurnSeconds float64 `json:"turnSeconds,omitempty"`
}

// complete replaces an absent list by an empty one.
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
		DryRun          bool `json:"dryRun,omitempty"`
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
				"%s: hosts: %q is empty, repeated or not a name", what, shorten(name))
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
		WithoutSnapshot: b.WithoutSnapshot, DryRun: b.DryRun,
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
