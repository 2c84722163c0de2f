// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

// RolloutHostCurrent is the state of a RolloutHost whose operation is in flight. The other states of a rollout and of
// its hosts are those of package record.
const RolloutHostCurrent = "current"

// MaxRolloutHosts is the maximum number of hosts that a request may name.
const MaxRolloutHosts = 1000

// RolloutRequest requests the same work on one host after another.
type RolloutRequest struct {
	Work policy.Work `json:"work"` // not WorkMaintenance
	// with policy.WorkCommand: the name of the program in commands.d of the hooks directory
	Command string   `json:"command,omitempty"`
	Hosts   []string `json:"hosts,omitempty"` // names or IDs; empty for all present hosts
	// the version that etcd must report after the work; hosts whose etcd already reports it are skipped; empty for any
	// version
	Version string `json:"version,omitempty"`
	Reason  string `json:"reason"` // required, one line
	// if version is set: do not wait for a snapshot before the first host
	WithoutSnapshot bool `json:"withoutSnapshot,omitempty"`
	// if version is a newer minor version: do not pause before the last member
	NoHold bool `json:"noHold,omitempty"`
	// lower the cluster version, with etcd's downgrade job; version is then of the preceding minor version
	Downgrade bool `json:"downgrade,omitempty"`
	// for defrag: include hosts on which defragmentation frees little space
	Force bool `json:"force,omitempty"`
	// only check the request, and return the rollout that would start
	DryRun bool `json:"dryRun,omitempty"`
	// with DryRun: return what would start if the ongoing rollout were aborted
	AfterAbort bool `json:"afterAbort,omitempty"`
}

// RolloutStateRequest requests a new state of the rollout.
type RolloutStateRequest struct {
	State string `json:"state"` // running, paused or aborted
}

// Rollout is the same work on one host after another. Each host is taken down for it.
type Rollout struct {
	ID      string      `json:"id"`
	Work    policy.Work `json:"work"`
	Command string      `json:"command,omitempty"` // name of the program
	Version string      `json:"version,omitempty"`
	Reason  string      `json:"reason"`
	By      string      `json:"by"`
	State   string      `json:"state"`
	Text    string      `json:"text,omitempty"` // why the rollout is in that state
	// Hold reports that the rollout still pauses before the last member with an older minor version of etcd.
	Hold bool `json:"hold,omitempty"`
	// Downgrade reports that the rollout lowers the cluster version, with etcd's downgrade job.
	Downgrade bool          `json:"downgrade,omitempty"`
	Started   time.Time     `json:"started"`
	Hosts     []RolloutHost `json:"hosts"`
	DryRun    bool          `json:"dryRun,omitempty"` // nothing was started
	// only in a dry run of a readdress, a defragmentation, an upgrade or a downgrade: the steps of the rollout, in
	// order
	Steps    []policy.PlanStep `json:"steps,omitempty"`
	Warnings []string          `json:"warnings,omitempty"` // only in a dry run of an upgrade: what to check before it
	// only in a dry run for all hosts: the members whose hosts are left out because they have no host record
	Absent []string `json:"absent,omitempty"`
	// only in a dry run with a version: the hosts without etcd.nextBinary, on which etcd's settings are not checked
	Unchecked []string `json:"unchecked,omitempty"`
}

// RolloutHost is the progress of a rollout on one host.
type RolloutHost struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	State string `json:"state"`
	// only in a dry run of a defragmentation: the database of the host's member, and why it would or would not be
	// defragmented
	Database *policy.Database `json:"database,omitempty"`
	Text     string           `json:"text,omitempty"`
	Seconds  float64          `json:"seconds,omitempty"` // duration of the work; absent until the host is done
	// TurnSeconds is how long the rollout took for this host; absent until the host is done. Unlike Seconds, it
	// includes the pause after the previous host.
	TurnSeconds float64 `json:"turnSeconds,omitempty"`
}
