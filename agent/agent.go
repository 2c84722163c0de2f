// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package agent is the loop that runs on every host: observe, decide, act.
//
// A round observes everything into one policy.View, asks policy.Decide what to do, publishes
// what it has seen and why it does what it does, and takes at most one step. The package
// promises:
//
//   - Nothing outside this loop renews the lock. A loop that hangs loses it, and with it the
//     right to act.
//   - Nothing in the loop waits longer than its bound. What may hang (the disk, a binary on it,
//     a step) runs beside the loop, once at a time, and its absence shows as an old value.
//   - A step starts only if it was decided on what was seen in its own round. One that needs the lock
//     (see policy.Steps) starts only under a lock that was confirmed by a fresh transaction and is
//     valid for as long as the step may take.
//   - What etcd has to do for the agents does not grow with the number of hosts that are no members
//     and have nothing to do; see observe/pace.go and publish/queue.go.
//   - What must survive a crash is in etcd or on disk, so that an agent that was killed anywhere
//     goes on from what it sees.
package agent

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/quorumd/quorumd/agent/act"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/forward"
	"github.com/quorumd/quorumd/agent/keep"
	"github.com/quorumd/quorumd/agent/local"
	"github.com/quorumd/quorumd/agent/observe"
	"github.com/quorumd/quorumd/agent/operate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/publish"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
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
	Hold local.Hold
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
	// Plugins are the operator's own checks; nil when there are none.
	Plugins Plugins
	// Network tells whether the members are reached from here; nil when nobody looks.
	Network Network
	// Founding is the word of the hosts that are to make the cluster by themselves; nil when none are listed.
	Founding Founding
	// Devices tells of the devices below a file system, by its device number; nil when nobody can. It may hang.
	Devices func(device uint64) health.DevicesReading
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
	Files     local.Files // nil: those of the host
	Logger    *slog.Logger
	// Stepping is told of every step before it starts and after it has ended. It may be nil.
	Stepping func(step policy.Step, done bool)
	// Rounded is told of every finished round: what feeds the watchdog. It may be nil.
	Rounded func(policy.Decision, health.Verdict)
	// Noting is told what is about to be written to this host's disk beside the loop, and by whose goroutine: a
	// simulation gives each a moment of its own, so that none depends on which the scheduler runs first. It may be nil.
	Noting func(what string)
}

// Agent is one host's loop. Make it with New and run it once.
type Agent struct {
	opt  Options
	log  *slog.Logger
	keys record.Keys

	*operate.Operator // answers the socket, beside Status and LookAgain
	actor             *act.Actor
	observer          *observe.Observer
	told              *publish.Publisher
	files             *local.State
	reasons           observe.Since // of the decisions
	keeper            *keep.Keeper
	lightly           bool          // the next round is one in between: it asks etcd for little
	turned            time.Duration // when the last turn of the loop began, the rounds in between apart
	rounds            uint64
	last              policy.Decision
	taken             policy.Step // by the last round, if it took one

	wake  chan struct{}
	hurry atomic.Bool   // somebody waits for a fresh picture of the cluster
	begun atomic.Uint64 // the number of the round that runs, or has ended last
}

// New makes an agent. It reads the agent's own files and connects to nothing.
func New(opt Options) (*Agent, error) {
	if opt.Monotonic == nil {
		opt.Monotonic = disk.Monotonic
	}
	if opt.Files == nil {
		opt.Files = local.HostFiles{}
	}
	c := opt.Config
	files, err := local.Open(opt.Files, c.Paths.State, c.Paths.Runtime, opt.Hold)
	if err != nil {
		return nil, err
	}
	a := &Agent{
		opt: opt, log: opt.Logger, keys: record.KeysFor(c.Cluster.Name),
		files: files, wake: make(chan struct{}, 1),
	}
	looks := observe.Options{
		Config: c, Instance: opt.Instance, BootID: opt.BootID,
		Etcd: opt.Etcd, Unit: opt.Unit, Probe: opt.Probe, Data: opt.Data, Local: files, Memory: opt.Files,
		EtcdVersion: opt.EtcdVersion, EtcdMetrics: opt.EtcdMetrics, BlockProgress: opt.BlockProgress,
		Sensors: opt.Sensors, Devices: opt.Devices, Links: opt.Links, Hardware: opt.Hardware, Now: opt.Now,
		Monotonic: opt.Monotonic, Wall: opt.Wall, Logger: opt.Logger,
	}
	looks.Chips = opt.Chips
	looks.Certificates, looks.EtcdSettings = opt.Certificates, opt.EtcdSettings
	looks.Discovery = opt.Discovery
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
	a.keeper = keep.New(keep.Options{
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
		Commands: opt.Hooks, Reboots: opt.Machine != nil, Checks: a.observer.Checks(), Snapshots: opt.Snapshots,
		Now: opt.Now, Wall: opt.Wall, Wake: a.Wake, Logger: opt.Logger, Version: opt.Version,
	}
	if opt.Recovery != nil {
		acts.Recovery, asks.Data = opt.Recovery, opt.Recovery
	}
	a.actor, a.Operator = act.New(acts), operate.New(asks)
	return a, nil
}

// Metrics gives the agent's metrics, for a registry.
func (a *Agent) Metrics() *publish.Metrics { return a.told.Metrics() }

// Status gives the picture of the last finished observation. It waits for nothing.
func (a *Agent) Status() control.Status { return a.told.Status() }

// Picture gives the same for those who look again and again: etcd is not asked anew for it.
func (a *Agent) Picture() control.Status { return a.told.Picture() }

// Voters gives the list of voters for the forwarder of this host, as they were when the cluster was last reached; ok is
// false before that. It waits for nothing.
func (a *Agent) Voters() (l forward.List, ok bool) { return a.told.Voters() }

// Fsyncs gives what the probe has measured lately, minute by minute, oldest first. It waits for nothing.
func (a *Agent) Fsyncs() []control.FsyncMinute { return a.told.Fsyncs() }

// Checks gives what is looked at on this machine, and where each check stands. It waits for nothing.
func (a *Agent) Checks() control.Checks { return a.told.Checks() }

// Run rounds until the context ends, then gives the lock and the presence back. etcd is left as
// it is.
func (a *Agent) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-a.wake:
		}
		if ctx.Err() != nil { // also when it is time for another round
			a.leave(ctx)
			return nil
		}
		select {
		case <-a.wake: // the round that begins now is the one that was asked for
		default:
		}
		if a.round(ctx) {
			timer.Reset(0) // a step was taken: look again at once
		} else {
			timer.Reset(a.again())
		}
	}
}

// again is when to look again after a round without a step. A look in between two turns of the loop is a
// light one, and does not put the next turn off.
func (a *Agent) again() time.Duration {
	next, early := a.opt.Config.Timing.Interval, a.last.Again
	if a.lightly {
		next = max(0, a.turned+next-a.opt.Now())
	}
	a.lightly = early > 0 && early < next
	if a.lightly {
		return early
	}
	return next
}

// leave is an orderly end: the next agent need not wait for leases to run out.
func (a *Agent) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.opt.Config.Timing.CallTimeout)
	defer cancel()
	a.actor.Leave(ctx)
	a.told.Leave(ctx)
	a.observer.Save(true)
}

// Wake makes the next round start at once, and ask etcd.
func (a *Agent) Wake() {
	a.hurry.Store(true)
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// round is one turn of the loop. It tells whether to look again at once: a step has succeeded, and is another than the
// last one.
func (a *Agent) round(ctx context.Context) bool {
	a.rounds++
	a.begun.Store(a.rounds)
	began := a.opt.Now()
	if !a.lightly {
		a.turned = began
	}
	a.actor.Renew(ctx)
	r := a.observer.Look(ctx, round.In{
		Number: a.rounds, Did: a.actor.Did(), Hurry: a.hurry.Swap(false), Light: a.lightly, Behind: a.last.Behind,
		First: a.last.First, Quiet: a.last.Quiet,
	})
	a.checkLock(ctx, r)
	a.decide(r)
	if a.stale(r) {
		a.observer.Confirm(ctx, r)
		a.checkLock(ctx, r)
		a.decide(r)
	}
	if a.opt.Founding != nil {
		a.opt.Founding.Tell(policy.FoundingWord(r.View))
	}
	a.keeper.Decided(ctx, r)
	a.TakeDue(ctx, r)
	a.DrillDue(ctx, r)
	a.observer.Done(r)
	a.told.Show(r)
	a.observer.Save(false)
	first := r.Decision.Step.Kind.Info().Led
	if !first {
		a.told.Publish(ctx, r)
	}
	a.last = r.Decision
	done, acted := a.actor.Act(ctx, r)
	if first {
		a.told.Publish(ctx, r)
	}
	if acted {
		a.told.Completed(ctx, r, done)
		acted = done.Err == nil
	}
	if acted {
		a.hurry.Store(true) // what was seen before the step is not so any more
	}
	a.told.Metrics().Round(r, a.opt.Now()-began)
	if a.opt.Rounded != nil {
		a.opt.Rounded(r.Decision, r.Verdict)
	}
	if !acted {
		a.taken = policy.Step{}
		return false
	}
	return !a.repeats(r.Decision.Step)
}

// repeats tells whether the step just taken is the one of the round before as well. Then it has changed nothing that
// is seen, and is taken again at the usual pace: at once would be an etcd restarted without end, as fast as it can be.
func (a *Agent) repeats(step policy.Step) bool {
	step.Why = "" // may tell of times
	repeats := step == a.taken
	a.taken = step
	return repeats
}

// stale tells whether a round has decided something on what was carried over: a step, or that it is not quiet any more.
func (a *Agent) stale(r *round.Round) bool {
	if r.Decision.Step.Kind != policy.StepNone {
		return !r.Fresh()
	}
	return a.last.Quiet && !r.Decision.Quiet && r.Reachable && !r.Looked()
}

// checkLock gives a lock up that a linearizable read shows to be gone, though its lease may live.
func (a *Agent) checkLock(ctx context.Context, r *round.Round) {
	if r.Reachable && r.Did.Token != 0 && a.actor.Check(ctx, r.LockAt) { // one that was taken since is not in it yet
		r.Did = a.actor.Did()
	}
}

// decide asks the policy, and measures for how long its reasons have stood.
func (a *Agent) decide(r *round.Round) {
	r.Decision = policy.Decide(r.View)
	r.ReasonFor = map[policy.ReasonCode]time.Duration{}
	for _, reason := range r.Decision.Reasons {
		r.ReasonFor[reason.Code] = a.reasons.Of("reason/"+string(reason.Code), "", r.At, r.Number)
	}
	a.reasons.Forget(r.Number)
}
