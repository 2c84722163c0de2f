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
	// Recovery makes a cluster from a survivor's data; nil if that is not possible.
	Recovery Recovery
	// Hold keeps etcd's unit from starting; nil: by a file in the state directory.
	Hold hoststate.StartGuard
	// Machine is the host itself; nil if it cannot be rebooted from here.
	Machine Machine
	// Hooks run before and after an operation; nil if there are none.
	Hooks Hooks
	// Snapshots runs the jobs with snapshots; nil if no store is configured.
	Snapshots operate.Snapshots
	// EtcdVersion returns the version of the local binary. It may hang with the disk.
	EtcdVersion func(ctx context.Context) (string, error)
	// Discovery returns the last result of endpoint discovery; nil without discovery.
	Discovery func() health.DiscoveryReading
	// Certificates returns the expiry of the certificates that connections to etcd depend on, in files and at these
	// URLs; nil if they cannot be read.
	Certificates func(ctx context.Context, urls []string) health.CertificateReading
	// EtcdSettings returns the settings of the etcd with that process ID; nil if they cannot be read. It may hang.
	EtcdSettings func(pid int) health.EtcdSettings
	// BlockProgress returns the counters of the block device under the probe; nil if they cannot be read.
	BlockProgress func(device uint64) (disk.Progress, error)
	// Sensors returns the state of the machine except for its disk; nil if it cannot be read. It may hang.
	Sensors func() health.MachineReading
	// EtcdMetrics returns the metrics of the local etcd; nil if they cannot be read.
	EtcdMetrics func(ctx context.Context) health.EtcdReading
	// MemberMetrics returns the metrics of any member's etcd, by its client URL; nil if they cannot be read.
	MemberMetrics func(ctx context.Context, url string) health.EtcdReading
	// ExternalChecks are the external checks; nil if there are none.
	ExternalChecks ExternalChecks
	// Network probes the members from this host; nil if they are not probed.
	Network Network
	// BootstrapAnswers exchanges answers with the hosts that are to bootstrap the cluster automatically; nil if none
	// are listed.
	BootstrapAnswers BootstrapExchange
	// Spool returns the state of the directory for restore tests; nil without a store of snapshots. It may hang.
	Spool func() (policy.Spool, error)
	// SinceRenewal returns the time since a lease in etcd was last renewed; nil if etcd is not queried for it.
	SinceRenewal func(ctx context.Context, lease int64) (time.Duration, error)
	// Devices returns the devices below a file system, by its device number; nil if they cannot be read. It may hang.
	Devices func(device uint64) health.DevicesReading
	// Database returns the state of the file system of etcd's database, if it is another one than that of the log,
	// which has that device number; nil if it cannot be read. It may hang.
	Database func(log uint64) health.DatabaseReading
	// Links returns the state of the interfaces that carry etcd's traffic; nil if it cannot be read. It may hang.
	Links func(context.Context) health.LinkReading
	// Hardware returns data from the drives and about them; Chips returns data from sensors. They are nil if these
	// cannot be read. Both may hang, Chips more often.
	Hardware func() health.HardwareReading
	Chips    func() health.Several[health.Sensor]

	Now func() time.Duration // since boot, including time suspended
	// Monotonic is the probe's clock; nil: CLOCK_MONOTONIC.
	Monotonic func() time.Duration
	Wall      func() time.Time
	Files     hoststate.Files // nil: the host's own
	Logger    *slog.Logger
	// Stepping is called before every step and after its end. It may be nil.
	Stepping func(step policy.Step, done bool)
	// Rounded is called after every round; it feeds the watchdog. It may be nil.
	Rounded func(policy.Decision, health.Assessment)
	// Noting is called before a write to this host's disk from outside the loop, with its purpose, in the goroutine
	// that writes. A simulation assigns each write a moment of its own, so that none depends on the scheduler's order.
	// It may be nil.
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
	looks.ExternalChecks = opt.ExternalChecks
	if opt.Recovery != nil {
		looks.Recovery = opt.Recovery
	}
	if opt.Network != nil {
		looks.Network = opt.Network
	}
	if opt.BootstrapAnswers != nil {
		looks.BootstrapAnswers = opt.BootstrapAnswers
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
		Config: c, BootID: opt.BootID, Etcd: opt.Etcd, Unit: opt.Unit, Probe: opt.Probe, Data: opt.Data,
		Machine: opt.Machine, Hooks: opt.Hooks, Files: files, Line: a.publisher.Journal().Line,
		ForgetData: a.observer.ForgetData, ForgetBinary: a.observer.ForgetBinary,
		Now: opt.Now, Wall: opt.Wall, Logger: opt.Logger, Stepping: opt.Stepping,
	}
	asks := operate.Options{
		Config: c, BootID: opt.BootID, Etcd: opt.Etcd, Rounds: a.publisher, History: a.publisher.Journal(),
		Files:    files,
		Commands: opt.Hooks, Machine: opt.Machine, Checks: a.observer.Checks(), Snapshots: opt.Snapshots,
		Now: opt.Now, Wall: opt.Wall, Wake: a.Wake, Logger: opt.Logger, Version: opt.Version,
	}
	if opt.Recovery != nil {
		acts.Recovery, asks.Data = opt.Recovery, opt.Recovery
	}
	a.actor, a.Operator = act.New(acts), operate.New(asks)
	return a, nil
}
