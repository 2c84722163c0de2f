// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package observe reads the state of etcd, the host, its disks and the operator's programs, each as often as needed,
// and builds the view from which the policy decides. It promises:
//
//   - It changes no file that identifies this host, no record and no lease. It only saves the health state and the
//     disk's history, and sets the rate of the probe's measurements.
//   - No read takes longer than its timeout. Anything that may hang runs in the background; while it hangs, its last
//     value grows old.
//   - Every read stores its results in the round, where other reads find them. Only the builder makes the view.
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
	"github.com/quorumd/quorumd/disk/blockdevice"
	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/systemd"
)

// Network probes the members from this host. Its methods never block.
type Network interface {
	Watch(members []network.Member, every time.Duration)
	Readings() []network.Reading
	ProbeNow(member uint64, since time.Duration)
}

// ExternalChecks runs the operator's own checks. Its methods never block.
type ExternalChecks interface {
	List(gates func(name string) health.Gate) []health.ExternalCheck
	Read(ctx context.Context) []health.ExternalCheckReading
}

// Sources are what the observer reads, each at its own interval. A source that is nil is not available on this host.
type Sources struct {
	// EtcdVersion returns the version of the local binary. It may hang with the disk.
	EtcdVersion func(ctx context.Context) (string, error)
	// Discovery returns the last result of endpoint discovery.
	Discovery func() health.DiscoveryReading
	// Certificates checks the certificates that connections to etcd depend on, in files and at the given URLs. It may
	// hang.
	Certificates func(ctx context.Context, urls []string) health.CertificateReading
	// EtcdSettings returns the settings of the etcd with the given process ID. It may hang.
	EtcdSettings func(pid int) health.EtcdSettings
	// MaxLearners returns the maximum number of learners that the etcd with the given process ID allows. It may hang.
	MaxLearners func(pid int) (int, error)
	// NextMaxLearners returns the maximum number of learners that the etcd with the given process ID would allow after
	// a restart, and where that limit is set; 0 if unknown. It may hang.
	NextMaxLearners func(pid int) (limit int, from string, err error)
	// NextEtcd checks whether etcd.nextBinary can replace the etcd with the given process ID; nil if no etcd.nextBinary
	// is configured. It may hang.
	NextEtcd func(ctx context.Context, pid int) (policy.NextEtcd, error)
	// PeerFiles returns the paths of the peer certificate, its key and the trusted CA with which the etcd with the
	// given process ID was started. It may hang.
	PeerFiles func(pid int) ([3]string, error)
	// PeerTLS tests the configured peer certificate; nil if none is configured.
	PeerTLS PeerTLS
	// EtcdMetrics returns the metrics of the local etcd, and MemberMetrics those of the member at a client URL.
	// MemberMetrics may hang.
	EtcdMetrics   func(ctx context.Context) health.EtcdReading
	MemberMetrics func(ctx context.Context, url string) health.EtcdReading
	// BlockProgress returns the counters of the block device under the probe.
	BlockProgress func(device uint64) (blockdevice.Progress, error)
	// Readings fill those parts of the health input that do not come from etcd, in this order.
	Readings []Source
	// ExternalChecks runs the operator's own checks.
	ExternalChecks ExternalChecks
	// Network probes the members from this host.
	Network Network
	// SinceRenewal returns the time since a lease in etcd was last renewed.
	SinceRenewal func(ctx context.Context, lease int64) (time.Duration, error)
	// Requests makes requests through the local member.
	Requests Requester
	// Hashes reads hashes of the members' data; nil if they are not compared.
	Hashes Hasher
	// Spool returns the state of the directory for restore tests. It may hang.
	Spool func() (policy.Spool, error)
}

// Options are the configuration and dependencies of an Observer.
type Options struct {
	Config           config.Config
	Instance, BootID string
	Sources

	Etcd  cluster.Etcd
	Unit  systemd.Unit
	Probe disk.Prober
	// InspectData returns the content of the data directory. It may hang with the disk.
	InspectData func(ctx context.Context) (datadir.Contents, error)
	Programs    hooks.Programs     // nil if there are no programs
	Recovery    recovery.Rebuilder // nil if this host's data cannot be rebuilt
	// BootstrapAnswers returns what the other listed hosts report; nil when no hosts are listed.
	BootstrapAnswers func() []policy.BootstrapAnswer
	Local            *hoststate.State
	// Testing reports whether a restore test runs on this host; nil without a snapshot store.
	Testing func() bool

	Now       func() time.Duration
	Monotonic func() time.Duration // the probe's clock
	Wall      func() time.Time
	Logger    *slog.Logger
	// Noting is called before a write to this host's disk from outside the loop, in the goroutine that writes. It may
	// be nil.
	Noting func(what string)
}

// Observer makes the observations of a round. Only the loop may call its methods, except the Forget methods.
type Observer struct {
	opt   Options
	log   *slog.Logger
	keys  record.Keys
	view  *Builder
	judge *judge
	pace  pace
	in    round.Input // the input of the current round

	before  *round.Round // the previous round, as published
	reached *round.Round // the last round in which the cluster was reachable
	// otherNames are the cluster names of other hosts in this etcd, as read at namesAt.
	otherNames []string
	namesAt    time.Duration
	home       cluster.Membership // members of this host's own cluster, as last listed

	clock   poll.Poller[time.Duration]
	binary  poll.Poller[string]
	next    poll.Poller[policy.NextEtcd]
	data    poll.Poller[datadir.Contents]
	spool   poll.Poller[policy.Spool]
	limit   poll.Poller[learnerLimit]
	process poll.Poller[processFiles]
	files   poll.Poller[string] // why etcd cannot use the configured peer certificate
	peers   poll.Poller[round.PeerRequests]
	leases  map[string]int64 // leases of the host records read last, by host ID
	renewed poll.Poller[map[string]time.Duration]
	decoded map[int64]record.Host // the host records read last, by modification revision
	parsed  parsed                // the cluster's other records, as last read
	rested  time.Duration         // when this host was last a resting host (see pace)
	asked   asked
	hashes  hashes
	// witnesses hold the fsync evidence from the etcds of voters with unhealthy host records, by member ID.
	witnesses map[uint64]*witness
}

// New returns an observer. It reads the health state that the previous agent saved, and opens no connection.
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

// Intervals at which slowly changing state is read, in intervals of the loop, and the maximum age of the results.
const (
	clockEvery  = 5
	dataEvery   = 2
	binaryEvery = 30
	maxAge      = 5 // maximum age of a result, in multiples of its read interval
)

// lookTimeout limits a read that may hang with the disk.
const lookTimeout = 5 * time.Second

// Look starts a round and makes all observations that are due.
func (o *Observer) Look(ctx context.Context, in round.Input) *round.Round {
	o.in = in
	r := &round.Round{Number: in.Number, At: o.opt.Now(), Wall: o.opt.Wall(), Did: in.Did}
	r.Request, r.LastRequest = o.opt.Local.Asked()
	r.Removal, _ = o.opt.Local.Removals()
	r.Transfer, _ = o.opt.Local.Transfers()
	r.Bootstrap = o.opt.Local.Bootstrap()
	r.Recovery, _ = o.opt.Local.Recoveries()
	if o.opt.Recovery != nil {
		r.Copy = o.opt.Recovery.State()
	}
	r.Noted = o.opt.Local.Noted(o.opt.BootID, r.At, o.opt.Config.Timing.JoinBackoff)
	if o.opt.BootstrapAnswers != nil {
		r.BootstrapAnswers = o.opt.BootstrapAnswers()
	}
	o.askCommand(ctx, r)
	o.askUnit(ctx, r)
	o.lookAtEtcd(ctx, r)
	o.lookAtFsyncs(ctx, r)
	o.lookAtHashes(ctx, r)
	o.lookAtRenewals(ctx, r)
	o.askHooks(ctx, r)
	o.lookAtData(ctx, r)
	o.lookAtSpool(ctx, r)
	o.askVersion(ctx, r)
	o.askMaxLearners(ctx, r)
	o.askNext(ctx, r)
	o.askPeerTLS(ctx, r)
	o.checkPeerFiles(ctx, r)
	o.askClock(ctx, r)
	o.lookAtNetwork(r)
	o.requestPeers(ctx, r)
	o.judgeHealth(ctx, r)
	r.Hung = o.hung()
	o.build(r)
	return r
}

// Confirm reads everything from etcd again. It is called if a round used carried-over data for a decision that needs
// the current cluster state: a step, or a decision that ends the quiet state.
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

// Done stores a finished round for the next one. The loop calls it before any other goroutine may read the round. In a
// large fleet the host records amount to megabytes, so a resting host (see pace) drops those it does not need, and
// reads them again minutes later.
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

// Save writes the health state to a file: always if force is set, otherwise after a change and periodically.
func (o *Observer) Save(force bool) { o.judge.save(force) }

// Leave saves what a stopping agent must not lose.
func (o *Observer) Leave(ctx context.Context) {
	o.judge.save(true)
	o.judge.saveHistoryLast(ctx)
}

// Checks returns the checks of this machine.
func (o *Observer) Checks() []health.Check { return health.Checks(thresholds(o.opt)) }

// ForgetData discards what was read from the data directory.
func (o *Observer) ForgetData() { o.data.Forget() }

// ForgetBinary discards the version of the local etcd binary.
func (o *Observer) ForgetBinary() { o.binary.Forget() }

// SetPace replaces the default limits on the rate at which the host reads from etcd.
func (o *Observer) SetPace(p Pace) { o.pace.limits = p }
