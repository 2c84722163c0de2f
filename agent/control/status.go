// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

// Status is the complete state of the host and its view of the cluster in one document. It is a snapshot taken at Time;
// anything observed earlier carries its age.
//
// Durations are in seconds and must be finite numbers. An absent age means never observed, which is neither good nor
// bad.
type Status struct {
	APIVersion string       `json:"apiVersion"`
	Time       time.Time    `json:"time"`
	Host       Host         `json:"host"`
	Role       policy.Role  `json:"role"`
	Next       Next         `json:"next"`
	Reasons    []Reason     `json:"reasons"`
	Health     Health       `json:"health"`
	Cluster    Cluster      `json:"cluster"`
	Hosts      []HostRecord `json:"hosts"`
	Omitted    *Omitted     `json:"omitted,omitempty"` // absent if all hosts are listed
	Retired    []Retired    `json:"retired"`           // the hosts that operators have retired, by ID
	Lock       Lock         `json:"lock"`
	Op         *Op          `json:"operation,omitempty"`
	Pause      *Pause       `json:"pause,omitempty"`
	Unit       Unit         `json:"unit"`
	Loop       Loop         `json:"loop"`

	Backup *Backup `json:"backup,omitempty"` // the cluster's snapshots

	Maintenance     *Maintenance    `json:"maintenance,omitempty"`     // this host's request
	LastMaintenance *MaintenanceEnd `json:"lastMaintenance,omitempty"` // this host's last maintenance
	Removal         *Removal        `json:"removal,omitempty"`         // the removal requested on this host
	LastRemoval     *RemovalEnd     `json:"lastRemoval,omitempty"`     // the last removal requested on this host
	// the leadership transfer requested on this host, and how the last one ended
	Transfer     *TransferStanding `json:"leaderTransfer,omitempty"`
	LastTransfer *TransferEnd      `json:"lastLeaderTransfer,omitempty"`
	Recovery     *Recovery         `json:"recovery,omitempty"`     // the plan in force on this host
	LastRecovery *RecoveryEnd      `json:"lastRecovery,omitempty"` // the last plan on this host
	// the cluster's rollout in flight, or else the last one
	Rollout *Rollout `json:"rollout,omitempty"`
}

// Host is the host that answers.
type Host struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Domain  string `json:"domain,omitempty"` // failure domain
	Mode    string `json:"mode"`             // observe or manage
	Version string `json:"version"`          // version of quorumd
	BootID  string `json:"bootID"`
}

// RoleLearner is etcd's name for a member without a vote. The host of such a member is a standby, a permanent learner
// or joining.
const RoleLearner policy.Role = "learner"

// Next is the host's next step.
type Next struct {
	Step string `json:"step"` // name of the step; empty if there is none
	Text string `json:"text"` // the step as text, such as "start etcd as a learner"
}

// Reason is one reason why the host takes no step, or no further step. The first reason in a list is the most
// important.
type Reason struct {
	Code   string    `json:"code"`
	Text   string    `json:"text"`             // text, with the measured value and its limit if there are any
	Remedy string    `json:"remedy,omitempty"` // what an operator can do; empty if waiting is enough
	Since  time.Time `json:"since,omitzero"`
	// Caution marks a reason that blocks nothing and stays until an operator acts on it.
	Caution bool `json:"caution,omitempty"`
	// Progress is how far the host's wait has come, if it can be measured.
	Progress *policy.Progress `json:"progress,omitempty"`
}

// Unit is the local etcd service.
type Unit struct {
	Name        string    `json:"name"`
	Runner      string    `json:"runner"` // systemd, process or external
	State       string    `json:"state"`
	Since       time.Time `json:"since,omitzero"`
	Detail      string    `json:"detail,omitempty"`
	DataDir     string    `json:"dataDir"`
	EtcdVersion string    `json:"etcdVersion,omitempty"`
}

// Loop is the state of the daemon's control loop.
type Loop struct {
	AgeSeconds      *float64 `json:"ageSeconds,omitempty"` // time since the round that the status shows began
	IntervalSeconds float64  `json:"intervalSeconds"`
	// StuckAfterSeconds is the age above which the loop counts as hung. Up to that age, the loop may be waiting for
	// members that do not answer.
	StuckAfterSeconds float64 `json:"stuckAfterSeconds,omitempty"`
	Rounds            uint64  `json:"rounds"`
	Steps             uint64  `json:"steps"`
}
