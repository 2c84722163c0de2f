// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"log/slog"
	"time"

	"github.com/quorumd/quorumd/agent/act"
	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/observe"
	"github.com/quorumd/quorumd/agent/operate"
	"github.com/quorumd/quorumd/agent/persist"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/publish"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/systemd"
)

// Options are the parts of an agent.
type Options struct {
	Config   config.Config // complete: host.name and host.id are set
	Instance string        // the same for every process of this agent until the host reboots
	BootID   string
	Version  string // of quorumd

	Etcd  cluster.Etcd
	Unit  systemd.Unit
	Probe disk.Prober
	Data  DataDir
	// Recovery rebuilds a cluster from a survivor's data; nil if that is not possible.
	Recovery recovery.Rebuilder
	// Hold keeps etcd's unit from starting; nil means a file in the state directory.
	Hold hoststate.StartGuard
	// Machine is the host itself; nil if the agent cannot reboot it.
	Machine Machine
	// Hooks runs the operator's hooks and commands; nil if there are none.
	Hooks hooks.Programs
	// Maintenance frees space after a NOSPACE alarm, and enables etcd's downgrade job; nil if the agent can do neither.
	Maintenance *cluster.Client
	// DeleteOldDatabase deletes the database from before a defragmentation; nil if the agent cannot defragment.
	DeleteOldDatabase func(ctx context.Context) error
	// Snapshots runs the snapshot jobs; nil if no store is configured.
	Snapshots operate.Snapshots
	// BootstrapAnswers exchanges answers with the other hosts in bootstrap.hosts; nil if none are listed.
	BootstrapAnswers BootstrapExchange
	// Sources are the agent's sources of data about the machine and etcd.
	observe.Sources

	Now func() time.Duration // since boot, including time suspended
	// Monotonic is the probe's clock; nil means CLOCK_MONOTONIC.
	Monotonic func() time.Duration
	Wall      func() time.Time
	Files     hoststate.Files // nil means the host's own
	Logger    *slog.Logger
	// Stepping is called before every step and after its end. It may be nil.
	Stepping func(step policy.Step, done bool)
	// Rounded is called after every round, to feed the watchdog. It may be nil.
	Rounded func(policy.Decision, health.Assessment)
	// Noting is called with the purpose of each write to this host's disk from outside the loop, before the write and
	// in the goroutine that writes. A simulation uses Noting to delay the writes, so that the result does not depend on
	// the scheduler. Noting may be nil.
	Noting func(what string)
}

// New creates an agent. It reads the agent's own files and connects to nothing.
func New(opt Options) (*Agent, error) {
	if opt.Monotonic == nil {
		opt.Monotonic = disk.Monotonic
	}
	if opt.Files == nil {
		opt.Files = hoststate.HostFiles{}
	}
	c := opt.Config
	files, err := hoststate.Open(opt.Files, c.Paths.State, c.Paths.Runtime, opt.Hold)
	if err != nil {
		return nil, err
	}
	a := &Agent{
		opt: opt, keys: record.KeysFor(c.Cluster.Name), files: files, wake: make(chan struct{}, 1),
	}
	looks := observe.Options{
		Config: c, Instance: opt.Instance, BootID: opt.BootID, Sources: opt.Sources,
		Etcd: opt.Etcd, Unit: opt.Unit, Probe: opt.Probe, InspectData: opt.Data.Inspect, Programs: opt.Hooks,
		Recovery: opt.Recovery, Local: files,
		Now: opt.Now, Monotonic: opt.Monotonic, Wall: opt.Wall, Logger: opt.Logger, Noting: opt.Noting,
	}
	if opt.Snapshots == nil {
		looks.Spool = nil
	} else {
		looks.Testing = func() bool { return operate.IsRestoreTest(opt.Snapshots.Job()) }
	}
	if opt.BootstrapAnswers != nil {
		looks.BootstrapAnswers = opt.BootstrapAnswers.Answers
	}
	if a.observer, err = observe.New(looks); err != nil {
		return nil, err
	}
	a.publisher = publish.New(publish.Options{
		Config: c, Instance: opt.Instance, BootID: opt.BootID, Version: opt.Version,
		Etcd: opt.Etcd, Probe: opt.Probe, Checks: a.observer.Checks(), Now: opt.Now, Wall: opt.Wall, Logger: opt.Logger,
		Hurry: func() { a.hurry.Store(true) }, Noting: opt.Noting,
	}, a.keys, files)
	a.keeper = persist.New(persist.Options{
		Config: c, BootID: opt.BootID, Etcd: opt.Etcd, Files: files, Now: opt.Now, Logger: opt.Logger,
		Wake: a.Wake, Noting: opt.Noting,
	})
	acts := act.Options{
		Config: c, BootID: opt.BootID, Etcd: opt.Etcd, Unit: opt.Unit, Probe: opt.Probe,
		MoveDataAside: opt.Data.MoveAside, Recovery: opt.Recovery, Hooks: opt.Hooks, Files: files,
		DeleteOldDatabase: opt.DeleteOldDatabase, Maintenance: opt.Maintenance,
		Line:       a.publisher.Journal().Line,
		ForgetData: a.observer.ForgetData, ForgetBinary: a.observer.ForgetBinary,
		Now: opt.Now, Wall: opt.Wall, Logger: opt.Logger, Stepping: opt.Stepping,
	}
	asks := operate.Options{
		Config: c, BootID: opt.BootID, Etcd: opt.Etcd, Rounds: a.publisher, History: a.publisher.Journal(),
		Files: files, Data: opt.Recovery, Commands: opt.Hooks, Checks: a.observer.Checks(), Snapshots: opt.Snapshots,
		Now: opt.Now, Wall: opt.Wall, Wake: a.Wake, Logger: opt.Logger, Version: opt.Version,
	}
	if opt.Machine != nil {
		acts.Reboot, asks.CheckReboot = opt.Machine.Reboot, opt.Machine.CheckReboot
	}
	a.actor, a.Operator = act.New(acts), operate.New(asks)
	return a, nil
}
