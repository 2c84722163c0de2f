// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package observe asks etcd, the host, its disks and the operator's programs, as often as each needs it, and makes the
// view of what it has found that the policy decides on. It promises:
//
//   - It changes nothing: no file that says who this host is, no record, no lease. It writes the memory of the verdict,
//     and tells the probe how closely to measure.
//   - No look waits longer than its bound. What may hang runs beside the loop, and its absence shows as an old value.
//   - A look puts what it has found into the round, and reads what others have found there. One builder makes the view
//     of that, and nobody else does.
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

// Members tells who is a member.
type Members interface {
	// Belongs says to which cluster this host belongs; 0 when that is not known.
	SetClusterID(clusterID uint64)
	Members(ctx context.Context) (cluster.Membership, error)
	Statuses(ctx context.Context, members []cluster.Member) map[uint64]cluster.Status
	// Answers gives what each says for itself, without anybody's agreement.
	Answers(ctx context.Context, members []cluster.Member) map[uint64]cluster.Status
}

// Peers tells who is at the other end.
type Peers interface {
	ClockOffset(ctx context.Context, wall func() time.Time) (time.Duration, error)
	cluster.KnownEndpoints
	// Who names as whom etcd sees this host; empty for nobody.
	User() string
}

// Etcd is what looks ask of the cluster.
type Etcd interface {
	Members
	Peers
	Read(ctx context.Context, spans ...cluster.Span) (cluster.Range, error)
	// ReadAt gives what one member holds, without anybody's agreement.
	ReadAt(ctx context.Context, endpoint string, spans ...cluster.Span) (cluster.Range, error)
}

// Unit is the local etcd service.
type Unit interface {
	Status(ctx context.Context) (systemd.Status, error)
}

// Probe measures the disk under etcd's write-ahead log. Its methods never wait.
type Probe interface {
	Read() disk.Reading
	SetBurst(on bool)
}

// Data is the local data directory. Its method may hang with the disk.
type Data interface {
	Inspect(ctx context.Context) (datadir.Contents, error)
}

// Programs are the operator's own. A look never waits for one.
type Programs interface {
	State(ctx context.Context, run hooks.Run) (hooks.Result, error)
}

// Network looks at the members from this host. Its methods never wait.
type Network interface {
	Watch(members []network.Member, every time.Duration)
	Sights() []network.Sight
	ProbeNow(member uint64, since time.Duration)
}

// ExternalChecks are the operator's own checks. Its methods never wait.
type ExternalChecks interface {
	List(gates func(name string) health.Gate) []health.ExternalCheck
	Read(ctx context.Context) []health.ExternalCheckReading
}

// Recovery tells how far the copy of a survivor's data is. Its method never waits.
type Recovery interface {
	State() recovery.Copy
}

// BootstrapExchange tells what the other listed hosts say of themselves. Its method never waits.
type BootstrapExchange interface {
	Answers() []policy.BootstrapAnswer
}

// Local is what lies on this host's disk, as it was last read or written.
type Local interface {
	Asked() (*hoststate.Request, *hoststate.End)
	Removals() (*hoststate.Removal, *hoststate.RemovalEnd)
	Bootstrap() *hoststate.BootstrapRequest
	Memos
}

// Memos are what was noted that no operation hangs on.
type Memos interface {
	Mutes(found []health.Finding, now time.Time) (hold []health.Mute, over []health.MuteEnd)
	Noted(bootID string, now, base time.Duration) hoststate.Noted
	Recoveries() (*hoststate.Recovery, *hoststate.RecoveryEnd)
}

// Memory keeps the verdict across a restart of the agent.
type Memory interface {
	Read(path string) ([]byte, error)
	Write(path string, data []byte, durable bool) error
}

// Options are the parts of an observer.
type Options struct {
	Config           config.Config
	Instance, BootID string

	Etcd     Etcd
	Unit     Unit
	Probe    Probe
	Data     Data
	Programs Programs          // nil when there are none
	Network  Network           // nil when nobody looks
	Plugins  ExternalChecks    // nil when there are none
	Recovery Recovery          // nil when none can be made
	Founding BootstrapExchange // nil when no hosts are listed
	Local    Local
	Memory   Memory

	// Spool looks at the directory in which a restore is tested, and may hang; Testing reports whether a restore test
	// runs on this host. They are nil where there is no store of snapshots.
	Spool   func() (policy.Spool, error)
	Testing func() bool

	// SinceRenewal returns for how long a lease in etcd has not been renewed; nil where etcd is not asked for it.
	SinceRenewal func(ctx context.Context, lease int64) (time.Duration, error)

	// Discovery gives the last answer to where the members are; nil where nobody is asked.
	Discovery func() health.DiscoveryReading
	// Certificates looks at what connections to etcd hang on, in files and at these URLs; EtcdSettings at how the etcd
	// with that process ID is set. They are nil when nobody can tell; they may hang.
	Certificates func(ctx context.Context, urls []string) health.CertificateReading
	EtcdSettings func(pid int) health.EtcdSettings

	EtcdVersion   func(ctx context.Context) (string, error)
	BlockProgress func(device uint64) (disk.Progress, error)   // nil when that cannot be told
	Sensors       func() health.MachineReading                 // nil when nobody can tell; it may hang
	EtcdMetrics   func(ctx context.Context) health.EtcdReading // nil when nobody can tell
	// MemberMetrics reads the metrics of the etcd that serves clients at a URL; nil when nobody can. It may hang.
	MemberMetrics func(ctx context.Context, url string) health.EtcdReading
	// Devices tells of the devices below a file system, by its device number; nil when nobody can. It may hang.
	Devices func(device uint64) health.DevicesReading
	// Database looks at the file system of etcd's database, which is another one than that of its log, or not: that has
	// this device number. Nil when the log lies within the data directory. It may hang.
	Database  func(log uint64) health.DatabaseReading
	Links     func(context.Context) health.LinkReading // the interfaces of etcd's traffic; nil as above, may hang
	Hardware  func() health.HardwareReading            // what drives say, and others of them; nil, may hang as above
	Chips     func() health.Several[health.Sensor]     // what sensors say; nil when nobody asks. It may hang
	Now       func() time.Duration
	Monotonic func() time.Duration // the probe's clock
	Wall      func() time.Time
	Logger    *slog.Logger
}

// Observer looks. All its methods belong to the loop, save those that forget.
type Observer struct {
	opt   Options
	log   *slog.Logger
	keys  record.Keys
	view  *Builder
	judge *judge
	pace  pace
	in    round.Input // of the round that runs

	before  *round.Round // the round that was published last
	reached *round.Round // the last one in which a cluster was reachable
	// otherNames are the cluster names of other hosts in this etcd, as they were read at namesAt.
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
	parsed  parsed                // the cluster's other records, as they were read last
	rested  time.Duration         // when this host was last not attentive
	asked   asked
	// witnesses are the etcds of voters that are unhealthy by their own records, by member ID.
	witnesses map[uint64]*witness
}

// New makes an observer. It reads the verdict of the agent before and connects to nothing.
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

// How often things that seldom change are looked at, in intervals of the loop; and how old they
// may grow.
const (
	clockEvery  = 5
	dataEvery   = 2
	binaryEvery = 30
	maxAge      = 5 // in looks of their own rhythm
)

// lookTimeout bounds a look that may hang with the disk.
const lookTimeout = 5 * time.Second

// Look begins a round with all that is due.
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
	if o.opt.Founding != nil {
		r.Founding = o.opt.Founding.Answers()
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

// Confirm looks at etcd anew, and completely, in a round that has found a step on something that was
// carried over: a step is decided on one picture, and that is of now.
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

// Done takes in a round that has decided, before anybody else may read it. Of a large fleet the records are megabytes:
// a host which rests drops those that it has no use for, and looks again in minutes.
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

// Save writes the verdict's memory if something has changed, and from time to time.
func (o *Observer) Save(force bool) { o.judge.save(force) }

// Checks gives what is looked at on this machine.
func (o *Observer) Checks() []health.Check { return health.Checks(thresholds(o.opt)) }

// ForgetData says that what was found in the data directory is so no more.
func (o *Observer) ForgetData() { o.data.Forget() }

// ForgetBinary says that the local etcd may be another one.
func (o *Observer) ForgetBinary() { o.binary.Forget() }

// SetPace gives the observer another pace than the usual one.
func (o *Observer) SetPace(p Pace) { o.pace.limits = p }
