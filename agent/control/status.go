// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "time"

// Status is everything the commands that look need, in one document. It is one moment's picture:
// Time is when it was taken, and whatever was observed earlier carries its age.
//
// Durations are in seconds and must be finite numbers. An age that is absent means that the
// thing was never observed, which is neither good nor bad news.
type Status struct {
	APIVersion string       `json:"apiVersion"`
	Time       time.Time    `json:"time"`
	Host       Host         `json:"host"`
	Role       Role         `json:"role"`
	Next       Next         `json:"next"`
	Reasons    []Reason     `json:"reasons"`
	Health     Health       `json:"health"`
	Cluster    Cluster      `json:"cluster"`
	Hosts      []HostRecord `json:"hosts"`
	Omitted    *Omitted     `json:"omitted,omitempty"` // absent when all hosts are listed
	Lock       Lock         `json:"lock"`
	Op         *Op          `json:"op,omitempty"`
	Pause      *Pause       `json:"pause,omitempty"`
	Unit       Unit         `json:"unit"`
	Loop       Loop         `json:"loop"`

	Backup *Backup `json:"backup,omitempty"` // the cluster's snapshots

	Maintenance     *Maintenance    `json:"maintenance,omitempty"`     // of this host
	LastMaintenance *MaintenanceEnd `json:"lastMaintenance,omitempty"` // of this host
	Removal         *Removal        `json:"removal,omitempty"`         // of a member, that this host was asked for
	LastRemoval     *RemovalEnd     `json:"lastRemoval,omitempty"`     // of those that this host was asked for
	Recovery        *Recovery       `json:"recovery,omitempty"`        // the plan that is in force on this host
	LastRecovery    *RecoveryEnd    `json:"lastRecovery,omitempty"`    // on this host
	// of the cluster: the one in flight, or else the last one
	Rollout *Rollout `json:"rollout,omitempty"`
}

// Host is the host that answers.
type Host struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Domain  string `json:"domain,omitempty"` // failure domain
	Mode    string `json:"mode"`             // observe, gate or manage
	Version string `json:"version"`          // of quorumd
	BootID  string `json:"bootID"`
}

// Role is what a host is to the cluster.
type Role string

// The roles of a host.
const (
	RoleVoter   Role = "voter"
	RoleStandby Role = "standby" // a learner that is caught up and kept warm
	RoleSpare   Role = "spare"   // no member
	RoleJoining Role = "joining" // a learner on its way
	RoleUnknown Role = "unknown" // not observed yet
)

// RoleLearner is what etcd calls a member without a vote. Only a Member has it: a host with such
// a member is a standby or joining.
const RoleLearner Role = "learner"

// Next is what the host will do next.
type Next struct {
	Step string `json:"step"` // the step's name, empty when it will do nothing
	Text string `json:"text"` // a clause for people, such as "start etcd as a learner"
}

// Reason is one reason why the host does nothing, or no more than it does. The first one in a
// list is the one that matters most.
type Reason struct {
	Code   string    `json:"code"`
	Text   string    `json:"text"`             // with the measured number and its limit, if there are any
	Remedy string    `json:"remedy,omitempty"` // what a person can do; empty when waiting is all
	Since  time.Time `json:"since,omitzero"`
	// Caution says that the host does no less for it, and that it stays until somebody does something about it.
	Caution bool `json:"caution,omitempty"`
	// Progress is how far that is which the host waits for, where it is counted.
	Progress *Progress `json:"progress,omitempty"`
}

// Progress is a number on its way to a goal, from below or from above: entries that a learner lacks, writes that a
// qualifying run has measured, bytes that a job has done. Two looks at it tell how long it still takes.
type Progress struct {
	Now  float64 `json:"now"`
	Goal float64 `json:"goal"` // it may change while it becomes known
	Unit string  `json:"unit"` // entries, writes, samples or bytes
}

// Units of a progress.
const (
	UnitEntries = "entries"
	UnitWrites  = "writes"
	UnitSamples = "samples"
	UnitBytes   = "bytes"
)

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

// Loop is the pulse of the daemon's control loop.
type Loop struct {
	AgeSeconds      *float64 `json:"ageSeconds,omitempty"` // since the last finished round
	IntervalSeconds float64  `json:"intervalSeconds"`
	// StuckAfterSeconds is the age beyond which the loop hangs. Below it may be waiting for members that do not answer.
	StuckAfterSeconds float64 `json:"stuckAfterSeconds,omitempty"`
	Rounds            uint64  `json:"rounds"`
	Steps             uint64  `json:"steps"`
}

// complete gives lists that are absent as empty ones, so that a script can walk them.
func (s Status) complete() Status {
	s.APIVersion = APIVersion
	s.Reasons = orEmpty(s.Reasons)
	s.Health.Findings = orEmpty(s.Health.Findings)
	s.Cluster.Members = orEmpty(s.Cluster.Members)
	s.Hosts = orEmpty(s.Hosts)
	if s.Rollout != nil {
		r := s.Rollout.complete()
		s.Rollout = &r
	}
	return s
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
