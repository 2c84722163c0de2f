// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package observe asks etcd, the host, its disks and the operator's programs, each as often as needed, and builds the
// view that the policy decides on. It promises:
//
//   - It changes nothing: no file that identifies this host, no record, no lease. It only writes the memory of the
//     health state, and sets how often the probe measures.
//   - No look waits longer than its bound. Anything that may hang runs in the background, and its absence shows as an
//     old value.
//   - A look puts its results into the round, and reads the results of other looks there. Only the builder makes the
//     view.
package observe

import (
	"context"
	"log/slog"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/datadir"
	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/poll"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/systemd"
)

// Members lists and asks the members of the cluster.
type Members interface {
	// SetClusterID sets the cluster that this host belongs to; 0 if unknown.
	SetClusterID(clusterID uint64)
	Members(ctx context.Context) (cluster.Membership, error)
	Statuses(ctx context.Context, members []cluster.Member) map[uint64]cluster.Status
	// Answers returns what each member reports by itself, without a quorum.
	Answers(ctx context.Context, members []cluster.Member) map[uint64]cluster.Status
}

// Peers identifies both ends of the connection to etcd.
type Peers interface {
	ClockOffset(ctx context.Context, wall func() time.Time) (time.Duration, error)
	cluster.KnownEndpoints
	// User returns the etcd user of this host; empty if there is none.
	User() string
}

// Etcd is what looks need of the cluster.
type Etcd interface {
	Members
	Peers
	Read(ctx context.Context, spans ...cluster.Span) (cluster.Range, error)
	// ReadAt returns what one member holds, without a quorum.
	ReadAt(ctx context.Context, endpoint string, spans ...cluster.Span) (cluster.Range, error)
}

// Unit is the local etcd service.
type Unit interface {
	Status(ctx context.Context) (systemd.Status, error)
}

// Probe measures the disk under etcd's write-ahead log. Its methods never block.
type Probe interface {
	Read() disk.Reading
	SetBurst(on bool)
}

// Data is the local data directory. Its method may hang with the disk.
type Data interface {
	Inspect(ctx context.Context) (datadir.Contents, error)
}

// Programs are the operator's programs. A look never waits for one.
type Programs interface {
	State(ctx context.Context, run hooks.Run) (hooks.Result, error)
}

// Network probes the members from this host. Its methods never block.
type Network interface {
	Watch(members []network.Member, every time.Duration)
	Sights() []network.Sight
	ProbeNow(member uint64, since time.Duration)
}

// ExternalChecks are the operator's own checks. Its methods never block.
type ExternalChecks interface {
	List(gates func(name string) health.Gate) []health.ExternalCheck
	Read(ctx context.Context) []health.ExternalCheckReading
}

// Recovery reports the progress of copying a survivor's data. Its method never blocks.
type Recovery interface {
	State() recovery.Copy
}

// BootstrapExchange returns what the other listed hosts report. Its method never blocks.
type BootstrapExchange interface {
	Answers() []policy.BootstrapAnswer
}

// Local is the state on this host's disk, as last read or written.
type Local interface {
	Asked() (*hoststate.Request, *hoststate.End)
	Removals() (*hoststate.Removal, *hoststate.RemovalEnd)
	Bootstrap() *hoststate.BootstrapRequest
	Memos
}

// Memos are notes that no operation depends on.
type Memos interface {
	Mutes(found []health.Finding, now time.Time) (hold []health.Mute, over []health.MuteEnd)
	Noted(bootID string, now, base time.Duration) hoststate.Noted
	Recoveries() (*hoststate.Recovery, *hoststate.RecoveryEnd)
}

// Memory keeps the health state across restarts of the agent.
type Memory interface {
	Read(path string) ([]byte, error)
	Write(path string, data []byte, durable bool) error
}

// Options are the parts of an observer.
type Options struct {
	Config           config.Config
	Instance, BootID string

	Etcd             Etcd
	Unit             Unit
	Probe            Probe
	Data             Data
	Programs         Programs          // nil when there are none
	Network          Network           // nil if nothing probes the members
	ExternalChecks   ExternalChecks    // nil when there are none
	Recovery         Recovery          // nil when none can be made
	BootstrapAnswers BootstrapExchange // nil when no hosts are listed
	Local            Local
	Memory           Memory

	// Spool reads the directory for restore tests, and may hang; Testing reports whether a restore test runs on this
	// host. They are nil without a snapshot store.
	Spool   func() (policy.Spool, error)
	Testing func() bool

	// SinceRenewal returns for how long a lease in etcd has not been renewed; nil if etcd is not asked for it.
	SinceRenewal func(ctx context.Context, lease int64) (time.Duration, error)

	// Discovery returns the last answer of endpoint discovery; nil if it is not configured.
	Discovery func() health.DiscoveryReading
	// Certificates checks the certificates that connections to etcd depend on, in files and at these URLs. EtcdSettings
	// returns the settings of the etcd with that process ID. Both may hang, and are nil if unavailable.
	Certificates func(ctx context.Context, urls []string) health.CertificateReading
	EtcdSettings func(pid int) health.EtcdSettings

	EtcdVersion   func(ctx context.Context) (string, error)
	BlockProgress func(device uint64) (disk.Progress, error)   // nil if unavailable
	Sensors       func() health.MachineReading                 // nil if unavailable; may hang
	EtcdMetrics   func(ctx context.Context) health.EtcdReading // nil if unavailable
	// MemberMetrics reads the metrics of the etcd that serves clients at a URL. It may hang; nil if unavailable.
	MemberMetrics func(ctx context.Context, url string) health.EtcdReading
	// Devices returns the devices below a file system, by its device number. It may hang; nil if unavailable.
	Devices func(device uint64) health.DevicesReading
	// Database reads the file system of etcd's database; the device number is that of the log's file system, which may
	// be another one. It may hang; nil when the log is within the data directory.
	Database  func(log uint64) health.DatabaseReading
	Links     func(context.Context) health.LinkReading // the interfaces of etcd's traffic; may hang, nil if unavailable
	Hardware  func() health.HardwareReading            // the drives' own reports and more; may hang, nil if unavailable
	Chips     func() health.Several[health.Sensor]     // sensor readings; may hang, nil if unavailable
	Now       func() time.Duration
	Monotonic func() time.Duration // the probe's clock
	Wall      func() time.Time
	Logger    *slog.Logger
}

// Observer asks and measures. All its methods belong to the loop, except the Forget methods.
type Observer struct {
	opt   Options
	log   *slog.Logger
	keys  record.Keys
	view  *Builder
	judge *judge
	pace  pace
	in    round.Input // of the current round

	before  *round.Round // the round that was published last
	reached *round.Round // the last one in which a cluster was reachable
	// otherNames are the cluster names of other hosts in this etcd, as read at namesAt.
	otherNames []string
	namesAt    time.Duration
	home       cluster.Membership // of this host's own cluster, as last listed

	clock   poll.Look[time.Duration]
	binary  poll.Look[string]
	data    poll.Look[datadir.Contents]
	spool   poll.Look[policy.Spool]
	leases  map[string]int64 // of the host records that were read last, by host ID
	renewed poll.Look[map[string]time.Duration]
	decoded map[int64]record.Host // the host records that were read last, by modification revision
	parsed  parsed                // the cluster's other records, as last read
	rested  time.Duration         // when this host was last not attentive
	asked   asked
	// witnesses are the etcds of voters with unhealthy host records, by member ID.
	witnesses map[uint64]*witness
}

// New returns an observer. It reads the health state of the previous agent and connects to nothing.
func New(opt Options) (*Observer, error) {
	c := opt.Config
	o := &Observer{
		opt: opt, log: opt.Logger, keys: record.KeysFor(c.Cluster.Name),
		view: NewBuilder(c, opt.BootID, opt.Instance, opt.Programs != nil),
		pace: pace{interval: c.Timing.Interval, host: c.Host.ID, limits: UsualPace()},
	}
	var err error
	o.judge, err = newJudge(opt)
	return o, err
}

// How often slow-changing things are read, in intervals of the loop, and how old they may become.
const (
	clockEvery  = 5
	dataEvery   = 2
	binaryEvery = 30
	maxAge      = 5 // in multiples of their own interval
)

// lookTimeout bounds a look that may hang with the disk.
const lookTimeout = 5 * time.Second

// Look starts a round with all looks that are due.
func (o *Observer) Look(ctx context.Context, in round.Input) *round.Round {
	o.in = in
	r := &round.Round{Number: in.Number, At: o.opt.Now(), Wall: o.opt.Wall(), Did: in.Did}
	r.Request, r.LastRequest = o.opt.Local.Asked()
	r.Removal, _ = o.opt.Local.Removals()
	r.Bootstrap = o.opt.Local.Bootstrap()
	r.Recovery, _ = o.opt.Local.Recoveries()
	if o.opt.Recovery != nil {
		r.Copy = o.opt.Recovery.State()
	}
	r.Noted = o.opt.Local.Noted(o.opt.BootID, r.At, o.opt.Config.Timing.JoinBackoff)
	if o.opt.BootstrapAnswers != nil {
		r.BootstrapAnswers = o.opt.BootstrapAnswers.Answers()
	}
	o.askCommand(ctx, r)
	o.askUnit(ctx, r)
	o.lookAtEtcd(ctx, r)
	o.lookAtFsyncs(ctx, r)
	o.lookAtRenewals(ctx, r)
	o.askHooks(ctx, r)
	o.lookAtData(ctx, r)
	o.lookAtSpool(ctx, r)
	o.askVersion(ctx, r)
	o.askClock(ctx, r)
	o.lookAtNetwork(r)
	o.judgeHealth(ctx, r)
	r.Hung = o.hung()
	o.build(r)
	return r
}

// Confirm reads all of etcd again in a round that decided on a step from carried-over data: every step is decided on
// one current cluster state.
func (o *Observer) Confirm(ctx context.Context, r *round.Round) {
	o.askEtcd(ctx, r, look{etcd: true, list: true, members: true, hosts: true})
	o.askHooks(ctx, r)
	o.askClock(ctx, r)
	o.build(r)
}

func (o *Observer) build(r *round.Round) {
	o.noteAsked(r)
	r.Resting, r.ViewedAt = !o.pace.attends, o.opt.Now()
	r.View = o.view.View(r, o.before)
	r.Environment = environment(o.opt.Config, r, &r.View)
}

// Done takes in a finished round before anything else may read it. In a large fleet the records are megabytes: a
// resting host drops those it does not need, and reads them again in minutes.
func (o *Observer) Done(r *round.Round) {
	if kept := o.kept(r); len(kept) < len(r.Hosts) {
		r.Hosts = kept
		r.View.Hosts = o.view.hosts(r)
	}
	o.before = r
	if r.Reachable {
		o.reached = r
		if !r.View.Cluster.Foreign() {
			o.home = r.Membership
		}
	}
}

// Save writes the memory of the health state if something has changed, and periodically.
func (o *Observer) Save(force bool) { o.judge.save(force) }

// Checks returns the checks of this machine.
func (o *Observer) Checks() []health.Check { return health.Checks(thresholds(o.opt)) }

// ForgetData discards what was read in the data directory.
func (o *Observer) ForgetData() { o.data.Forget() }

// ForgetBinary discards the version of the local etcd binary.
func (o *Observer) ForgetBinary() { o.binary.Forget() }

// SetPace replaces the usual pace.
func (o *Observer) SetPace(p Pace) { o.pace.limits = p }
