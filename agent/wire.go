// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"log/slog"
	"time"

	"github.com/quorumd/quorumd/agent/act"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/observe"
	"github.com/quorumd/quorumd/agent/operate"
	"github.com/quorumd/quorumd/agent/persist"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/publish"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/health"
)

// Options are the parts of an agent.
type Options struct {
	Config   config.Config // complete: host.name and host.id are set
	Instance string        // the same for every process of this agent until the host reboots
	BootID   string
	Version  string // of quorumd

	Etcd  Etcd
	Unit  Unit
	Probe Probe
	Data  DataDir
	// Recovery makes a cluster of a survivor's data; nil when it cannot.
	Recovery Recovery
	// Hold keeps etcd's unit from starting; nil: by a file in the state directory.
	Hold hoststate.StartGuard
	// Machine is the host itself; nil when it cannot be rebooted from here.
	Machine Machine
	// Hooks run before and after; nil when there are none.
	Hooks Hooks
	// Snapshots are the jobs with them; nil when there is no place for any.
	Snapshots operate.Snapshots
	// EtcdVersion asks the local binary. It may hang with the disk.
	EtcdVersion func(ctx context.Context) (string, error)
	// Discovery gives the last answer to where the members are; nil where nobody is asked.
	Discovery func() health.DiscoveryReading
	// Certificates looks until when those are valid that connections to etcd hang on, in files and at these URLs; nil
	// when nobody can.
	Certificates func(ctx context.Context, urls []string) health.CertificateReading
	// EtcdSettings tells how the etcd with that process ID is set; nil when nobody can. It may hang.
	EtcdSettings func(pid int) health.EtcdSettings
	// BlockProgress tells what the block device under the probe has done; nil when that cannot be
	// told.
	BlockProgress func(device uint64) (disk.Progress, error)
	// Sensors tells how the machine is beside its disk; nil when nobody can. It may hang.
	Sensors func() health.MachineReading
	// EtcdMetrics asks the local etcd for what it tells of itself; nil when nobody can.
	EtcdMetrics func(ctx context.Context) health.EtcdReading
	// MemberMetrics asks the etcd of any member, by its client URL; nil when nobody can.
	MemberMetrics func(ctx context.Context, url string) health.EtcdReading
	// ExternalChecks are the operator's own checks; nil when there are none.
	Plugins ExternalChecks
	// Network tells whether the members are reached from here; nil when nobody looks.
	Network Network
	// BootstrapExchange is the word of the hosts that are to make the cluster by themselves; nil when none are listed.
	Founding BootstrapExchange
	// Spool looks at the directory in which a restore is tested; nil where there is no store of snapshots. It may hang.
	Spool func() (policy.Spool, error)
	// SinceRenewal returns for how long a lease in etcd has not been renewed; nil where etcd is not asked for it.
	SinceRenewal func(ctx context.Context, lease int64) (time.Duration, error)
	// Devices tells of the devices below a file system, by its device number; nil when nobody can. It may hang.
	Devices func(device uint64) health.DevicesReading
	// Database looks at the file system of etcd's database, where that of its log, with that device number, may be
	// another one; nil where it cannot. It may hang.
	Database func(log uint64) health.DatabaseReading
	// Links tells of the interfaces that carry etcd's traffic; nil when nobody can. It may hang.
	Links func(context.Context) health.LinkReading
	// Hardware tells what drives say of themselves, and others of them; Chips what sensors say. They are nil when
	// nobody can; they may hang, and Chips the sooner.
	Hardware func() health.HardwareReading
	Chips    func() health.Several[health.Sensor]

	Now func() time.Duration // since boot, running on while suspended
	// Monotonic is the probe's clock. Nil: CLOCK_MONOTONIC.
	Monotonic func() time.Duration
	Wall      func() time.Time
	Files     hoststate.Files // nil: those of the host
	Logger    *slog.Logger
	// Stepping is told of every step before it starts and after it has ended. It may be nil.
	Stepping func(step policy.Step, done bool)
	// Rounded is told of every finished round: what feeds the watchdog. It may be nil.
	Rounded func(policy.Decision, health.Assessment)
	// Noting is told what is about to be written to this host's disk beside the loop, and by whose goroutine: a
	// simulation gives each a moment of its own, so that none depends on which the scheduler runs first. It may be nil.
	Noting func(what string)
}

// New makes an agent. It reads the agent's own files and connects to nothing.
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
		Config: c, Instance: opt.Instance, BootID: opt.BootID,
		Etcd: opt.Etcd, Unit: opt.Unit, Probe: opt.Probe, Data: opt.Data, Local: files, Memory: opt.Files,
		EtcdVersion: opt.EtcdVersion, EtcdMetrics: opt.EtcdMetrics, BlockProgress: opt.BlockProgress,
		Sensors: opt.Sensors, Devices: opt.Devices, Links: opt.Links, Hardware: opt.Hardware, Now: opt.Now,
		Monotonic: opt.Monotonic, Wall: opt.Wall, Logger: opt.Logger,
	}
	looks.Chips, looks.Database, looks.MemberMetrics = opt.Chips, opt.Database, opt.MemberMetrics
	looks.Certificates, looks.EtcdSettings = opt.Certificates, opt.EtcdSettings
	looks.Discovery, looks.SinceRenewal = opt.Discovery, opt.SinceRenewal
	if opt.Snapshots != nil {
		looks.Spool = opt.Spool
		looks.Testing = func() bool { return operate.IsRestoreTest(opt.Snapshots.Job()) }
	}
	if opt.Hooks != nil {
		looks.Programs = opt.Hooks
	}
	looks.Plugins = opt.Plugins
	if opt.Recovery != nil {
		looks.Recovery = opt.Recovery
	}
	if opt.Network != nil {
		looks.Network = opt.Network
	}
	if opt.Founding != nil {
		looks.Founding = opt.Founding
	}
	if a.observer, err = observe.New(looks); err != nil {
		return nil, err
	}
	a.told = publish.New(publish.Options{
		Config: c, Instance: opt.Instance, BootID: opt.BootID, Version: opt.Version,
		Etcd: opt.Etcd, Probe: opt.Probe, Checks: a.observer.Checks(), Now: opt.Now, Wall: opt.Wall, Logger: opt.Logger,
		Hurry: func() { a.hurry.Store(true) }, Noting: opt.Noting,
	}, a.keys, files)
	a.keeper = persist.New(persist.Options{
		Config: c, BootID: opt.BootID, Etcd: opt.Etcd, Files: files, Now: opt.Now, Logger: opt.Logger,
		Wake: a.Wake, Noting: opt.Noting,
	})
	acts := act.Options{
		Config: c, BootID: opt.BootID, Etcd: opt.Etcd, Unit: opt.Unit, Probe: opt.Probe, Data: opt.Data,
		Machine: opt.Machine, Hooks: opt.Hooks, Files: files, Line: a.told.Journal().Line,
		ForgetData: a.observer.ForgetData, ForgetBinary: a.observer.ForgetBinary,
		Now: opt.Now, Wall: opt.Wall, Logger: opt.Logger, Stepping: opt.Stepping,
	}
	asks := operate.Options{
		Config: c, BootID: opt.BootID, Etcd: opt.Etcd, Rounds: a.told, History: a.told.Journal(), Files: files,
		Commands: opt.Hooks, Machine: opt.Machine, Checks: a.observer.Checks(), Snapshots: opt.Snapshots,
		Now: opt.Now, Wall: opt.Wall, Wake: a.Wake, Logger: opt.Logger, Version: opt.Version,
	}
	if opt.Recovery != nil {
		acts.Recovery, asks.Data = opt.Recovery, opt.Recovery
	}
	a.actor, a.Operator = act.New(acts), operate.New(asks)
	return a, nil
}
