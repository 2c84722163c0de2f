// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// Builder makes the policy's view of a round. It reads nothing itself. Between rounds it remembers since when
// conditions have been true, and the last reports of hosts, so that a host that falls silent keeps its standby mark.
type Builder struct {
	config           config.Config
	bootID, instance string
	programs         bool // this agent can run the operator's programs
	limits           policy.Limits

	since    Since
	versions map[string]policy.Version
	// standbys holds, by member ID, whether a learner's host last reported it as a standby.
	standbys map[uint64]bool
	ledAt    time.Duration // when this host's leading member was last asked
	// builder of the leader's view; nil unless this host's member was asked as the leader recently
	led     *Builder
	judged  bool                     // the health state was known in a round in which this host counted as ejected
	strains map[string]time.Duration // when a host was last WARM or worse because of disk, CPU or network, by host ID
	space   spaceTracker
}

// NewBuilder returns a builder for the agent with this instance ID, during the boot with this boot ID.
func NewBuilder(c config.Config, bootID, instance string, programs bool) *Builder {
	return &Builder{
		config: c, bootID: bootID, instance: instance, programs: programs, limits: limitsOf(c),
		versions: map[string]policy.Version{},
	}
}

// healthDelayCalls is the maximum number of calls to etcd between two reports of a host's health state: the calls for
// the member list and the members' statuses, and the report itself.
const healthDelayCalls = 4

func limitsOf(c config.Config) policy.Limits {
	t := c.Timing
	return policy.Limits{
		Settle: t.Settle, Cooldown: t.Cooldown, PromoteStable: t.PromoteStable, SteadyLag: t.SteadyLag,
		PromoteLag: uint64(t.PromoteLag), LearnerStall: t.LearnerStall, LearnerMax: t.LearnerMax,
		TransferTimeout: t.TransferTimeout, TransferInterval: t.TransferInterval, ReturnStable: t.ReturnStable,
		ReturnMax:    t.ReturnMax,
		ReturnGiveUp: t.ReturnGiveUp,
		HealthDelay:  t.Interval + healthDelayCalls*t.CallTimeout,
		OrphanGrace:  t.OrphanGrace, LockTTL: t.LockTTL, StartRetry: t.Settle, ClockOffset: t.ClockMaxOffset,
		AllowUnsafe: c.Cluster.AllowUnsafeVersion,
		DeadGrace:   time.Duration(c.Repair.Dead), UnhealthyGrace: time.Duration(c.Repair.Unhealthy),
		RepairsPerDay: c.Repair.PerDay, CleanFor: c.Repair.CleanFor,
	}
}

// bootstrapOf returns the state of the automatic bootstrap by the listed hosts.
func bootstrapOf(c config.Config, r *round.Round) policy.BootstrapAttempt {
	if len(c.Bootstrap.Hosts) == 0 {
		return policy.BootstrapAttempt{}
	}
	return policy.BootstrapAttempt{
		List: c.Bootstrap.Digest(c.Cluster.Name), First: c.Bootstrap.SortedHosts()[0].Name, Others: r.BootstrapAnswers,
		OnRequest: c.Bootstrap.Expect == 0, PromisedList: r.Noted.BootstrapAttempt.List,
		Attempt: r.Noted.BootstrapAttempt.Attempt,
	}
}

// belongs returns the ID of the cluster that this host belongs to, as configured or recorded on this host; 0 if
// unknown.
func belongs(c config.Config, r *round.Round) uint64 {
	id := r.Noted.Cluster
	if want := c.Cluster.ID; want != "" {
		_, _ = fmt.Sscanf(want, "%x", &id) // never fails: the configuration was validated
	}
	return id
}

// View returns the view of a round. A second call in a round returns the same view if the observations are the same.
// before is the previous round, or nil.
func (b *Builder) View(r, before *round.Round) policy.View {
	c := b.config
	v := policy.View{
		Limits: b.limits, Target: configuredSize(c),
		Self: policy.Self{
			ID: c.Host.ID, Name: c.Host.Name, PeerURL: c.Etcd.PeerURL, Mode: policy.Mode(c.Mode),
			Drives: c.Etcd.Runner != config.RunnerExternal || r.UnitErr == nil && r.Unit.ByPrograms,
			Binary: c.Etcd.Binary, MemberID: r.Noted.Member, ClusterID: r.Noted.Cluster, StandbyID: r.Noted.Standby,
			LostID: r.Noted.Lost, DataMount: r.Noted.Mount,
			Learner: c.Host.Role == config.RoleLearner, MaxLearners: c.Etcd.MaxLearners(),
			NextLearners: r.NextLimit.Limit, NextLearnersFrom: r.NextLimit.From,
			PeerFiles: r.PeerFiles,
		},
		Failed: r.Did.Failed, Stuck: r.Did.Stuck, PromotionPending: r.Did.Promoted.Age(r.At) < c.Timing.LockTTL,
		UpdatePending: r.Did.UpdateSent.Age(r.At) < c.Timing.LockTTL,
		Bootstrap: policy.Bootstrap{
			Requested: r.Bootstrap != nil, Decided: r.Bootstrap != nil && r.Bootstrap.Decided,
			Done: r.Noted.Cluster != 0, LastCluster: r.Noted.LastCluster,
		},
		BootstrapAttempt: bootstrapOf(c, r),
		Backoff:          r.Noted.Backoff, Unreadable: r.Unreadable,
		Resting: r.Resting, HostsFresh: r.HostsAt == r.At && r.Reachable,
		Asked: b.asked(r), Removal: b.removal(r), TransferAsked: b.transfer(r), Unit: b.unit(r), Data: dataOf(r),
		Health: b.health(r),
		Spool:  spoolOf(r),
		Clock:  policy.Clock{Known: r.Clock.OK, Offset: r.Clock.Value},
	}
	v.Data = v.Data.Mounted(v.Self)
	if r.Binary.OK {
		v.Self.Etcd = policy.ParseVersion(r.Binary.Value)
	}
	v.Cluster = policy.Cluster{
		Reachable: r.Reachable, Listed: r.Listed, Fresh: r.EtcdAt == r.At, Error: r.Problem, Denied: r.Denied,
		OtherNames: r.OtherNames,
	}
	if r.Listed {
		b.ownMember(&v, r)
		v.Cluster.ID = r.Membership.ClusterID
		v.Cluster.StableFor = b.since.Of("membership", signature(r.Membership), r.At, r.Number)
	}
	if r.Reachable {
		b.etcd(&v, r, before)
	} else { // a short gap does not restart the durations after which a member counts as dead
		b.since.carry(r.At-round.Blink*c.Timing.Interval, r.Number)
		b.bridgeSpace(r)
		if v.Health.Healthy() { // a short gap does not end a healthy period: a spare reads etcd rarely
			b.since.bridge(healthyPeriod, r.At-healthyPeriodGap*c.Timing.Interval, r.Number)
		}
	}
	v.Cluster.ExpectedID = belongs(c, r)
	b.leaderless(&v, r)
	v.Recovery, v.CopiedFor = b.recovery(r), r.Did.Copied.Age(r.At)
	next := environment(c, r, &v)
	v.Unit.EnvReady = r.Did.Environment != nil && maps.Equal(r.Did.Environment, next)
	v.Unit.EnvBegun = r.Did.EnvironmentBegun != nil && maps.Equal(r.Did.EnvironmentBegun, next)
	v.Self.Conflict = policy.Conflict(v)
	v.LeadershipTransfers = b.leadershipTransfers(&v, r)
	v.Led = b.leader(&v, r)
	b.markStandbys(&v, r)
	b.since.Forget(r.Number)
	maps.DeleteFunc(b.strains, func(_ string, at time.Duration) bool { return r.At-at > policy.CommonSpan })
	return v
}

// etcd builds the view of a reachable cluster.
func (b *Builder) etcd(v *policy.View, r, before *round.Round) {
	b.records(v, r)
	v.Repairs = r.Repairs.Today(r.Wall, func(id record.MemberID) bool {
		_, listed := r.Membership.ByID(uint64(id))
		return listed
	})
	v.Ejections = b.ejections(v, r)
	v.Backup = b.backup(r)
	b.members(v, r)
	v.Target = b.size(v, r)
	markDomains(v, r.Noted.Domains)
	markLearners(v, r.Noted.Learners)
	// In a long gap between two reads from etcd, an operation may have begun and ended unobserved. A single late answer
	// is not such a gap.
	if between := b.config.Timing.Interval + b.config.Timing.CallTimeout; before != nil &&
		r.At-before.EtcdAt > round.Blink*between {
		b.since.truth("idle", false, r.At, r.Number)
	}
	v.IdleFor = min(b.since.truth("idle", r.OpAt == 0, r.At, r.Number),
		b.since.Of("ended", fmt.Sprint(r.EndedAt), r.At, r.Number))
	v.Op = b.operation(r)
	b.requestedOperation(v, r)
	v.Rollout = rolloutOf(r)
	if since := b.since.Of("rollout", strconv.FormatInt(r.RolloutAt, 10), r.At, r.Number); v.Rollout != nil {
		v.Rollout.UnchangedFor = since
	}
	v.Space = b.spaceOf(v, r)
	v.Space.Automatic.DueFor = b.since.truth("defragmentation due", policy.DefragDue(*v), r.At, r.Number)
	v.PlaceFreeFor = b.since.truth("free", r.OpAt == 0 && r.Lock == nil && policy.PlaceFree(*v), r.At, r.Number)
}

// ownMember adds to the view whether this host's member is listed, and the URLs under which the member is registered if
// they differ from the configured ones.
func (b *Builder) ownMember(v *policy.View, r *round.Round) {
	m, listed := r.OwnMember(r.Membership, v.Self.PeerURL)
	v.Bootstrap.Listed = listed
	if listed && len(m.PeerURLs) > 0 && !slices.Contains(m.PeerURLs, v.Self.PeerURL) {
		v.Self.PeerURL, v.Self.NewPeerURL = m.PeerURLs[0], v.Self.PeerURL
	}
	if url := b.config.Etcd.ClientURL; listed && len(m.ClientURLs) > 0 && !slices.Contains(m.ClientURLs, url) {
		v.Self.NewClientURL, v.Self.ClientURL = url, strings.Join(m.ClientURLs, ",")
	}
}

// configuredSize returns the size that applies until an operator resizes the cluster.
func configuredSize(c config.Config) policy.Target {
	return policy.Target{Voters: c.Cluster.Voters, Standbys: c.Cluster.Standbys, Configured: c.Cluster.Voters}
}

// size returns the size of the cluster. It runs after members, because an unreadable size keeps the number of voters.
func (b *Builder) size(v *policy.View, r *round.Round) policy.Target {
	unreadable := slices.ContainsFunc(r.Unreadable, func(u policy.Unreadable) bool {
		return u.Kind == policy.RecordSize
	})
	var recorded *policy.Size
	if r.Size != nil {
		recorded = &policy.Size{
			Voters: r.Size.Voters, WithoutSnapshot: r.Size.WithoutSnapshot,
			For: b.since.Of(carried+"size", strconv.Itoa(r.Size.Voters), r.At, r.Number),
		}
	}
	return policy.SizeOf(configuredSize(b.config), recorded, unreadable, v.Cluster)
}

// members builds the view's members from the member list and the statuses. It runs after records, because a pause
// restarts the durations of learners.
func (b *Builder) members(v *policy.View, r *round.Round) {
	leader := leaderOf(r.Statuses)
	for _, s := range r.Statuses {
		v.Cluster.DBSize = max(v.Cluster.DBSize, uint64(max(0, s.DBSize)))
		if s.Downgrade != "" {
			v.Cluster.Job.Enabled, v.Cluster.Job.Target = true, b.version(s.Downgrade)
		}
	}
	job := &v.Cluster.Job
	job.For = b.since.Of("downgrade", fmt.Sprint(job.Enabled, job.Target), r.At, r.Number)
	v.Cluster.Intact, v.Cluster.Roomy, v.Cluster.Alarms = alarmsOf(r)
	v.Cluster.Divided = r.Hashes.Known && r.Hashes.Divided
	head, listed := r.Statuses[leader]
	headKnown := listed && head.Err == nil && head.Leader == leader
	for _, m := range r.Membership.Members {
		s := r.Statuses[m.ID]
		member := policy.Member{
			ID: m.ID, Name: m.Name, PeerURL: firstOf(m.PeerURLs), Learner: m.Learner,
			Leader: m.ID == leader, ThinksLearner: s.Learner, Version: b.version(s.Version), RTT: s.RTT,
			Storage:  b.version(s.Storage),
			Live:     s.Err == nil && s.MemberID == m.ID && s.Leader != 0 && (m.Learner || serves(r, s)),
			Errors:   len(s.Errors) > 0,
			Database: policy.Database{Size: s.DBSize, InUse: s.DBInUse, Quota: s.DBQuota},
		}
		if slices.Contains(m.PeerURLs, v.Self.PeerURL) {
			member.PeerURL = v.Self.PeerURL
		}
		if s.Err == nil && headKnown {
			member.LagKnown = true
			member.Lag = max(head.Index, s.Applied) - s.Applied
		}
		// Durations are measured between answers: an answer carried over from an earlier round neither extends nor
		// interrupts them.
		if _, asked := r.Statuses[m.ID]; r.StatusesAt == r.At || asked && b.recent(r) {
			b.since.trackMember(&member, s.Applied, v.Limits, v.Pause != nil, r.StatusesAt, r.Number)
		}
		member.AgentGoneFor, member.Fsyncs = b.agentGone(r, m), r.Fsyncs[m.ID]
		member.Corrupt = r.Corrupt[m.ID]
		v.Cluster.Members = append(v.Cluster.Members, member)
	}
}

// serves reports whether a voter has answered a linearizable read or, if only this host's leading member was read,
// follows that leader.
func serves(r *round.Round, s cluster.Status) bool {
	if r.By != 0 {
		return s.Leader == r.By
	}
	return s.Linearizable
}

// recent reports whether the last answers of members are recent enough to bridge a short gap.
func (b *Builder) recent(r *round.Round) bool {
	return r.At-r.StatusesAt <= round.Blink*b.config.Timing.Interval
}

// version parses a version, or returns it from the cache.
func (b *Builder) version(text string) policy.Version {
	v, known := b.versions[text]
	if !known {
		if v = policy.ParseVersion(text); len(b.versions) < versionsKept {
			b.versions[text] = v
		}
	}
	return v
}

// versionsKept limits the cache. A cluster rarely runs more than two versions at a time.
const versionsKept = 16

func firstOf(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// hosts builds the view of the hosts.
func (b *Builder) hosts(r *round.Round) []policy.Host {
	out := make([]policy.Host, 0, len(r.Hosts))
	for _, h := range r.Hosts {
		state, err := health.ParseState(h.Health)
		if err != nil {
			state = health.Unknown
		}
		out = append(out, policy.Host{
			ID: h.ID, Name: h.Name, Domain: h.Domain, PeerURL: peerURLOf(r, h),
			Role: policy.Role(h.Role), Health: state,
			Ungated: health.ParseGates(h.Spares), Qualified: h.Qualified, Manage: h.Mode == string(policy.Manage),
			Learner: h.Learner, MaxLearners: h.MaxLearners, NoStandbys: h.NoStandbys,
			PeerTLS: policy.PeerTLS(h.PeerTLS), Unreached: b.unreached(r, h),
			Waiting: policy.ReasonCode(h.Waiting),
			P99:     writesTook(h.FsyncP99),
			Wants:   policy.Work(h.Wants), AskedAt: h.AskedAt, Answered: b.answered(r, h),
			InOperation: r.Released.InOperation(h),
			Own:         h.ID == b.config.Host.ID && b.ours(r, h.Instance),
			Sees:        b.reachability(r, h), MemberLostFor: b.memberLost(r, h),
			UnhealthySince: b.unhealthySince(r, h, state), Recovers: h.Recovers, Strained: b.strained(r, h, state),
			RestoreTests: policy.RestoreTestAbility(h.RestoreTests), Stores: h.Stores, Writes: b.writes(r, h),
			AsksWrites: h.AsksWrites, HealsAfter: writesTook(h.HealsAfter), Defective: h.Defective,
			DataDiffers: h.DataDiffers,
		})
	}
	return out
}

// peerURLOf returns the peer URL under which a host's member is registered. Shortly after a change, the host's record
// may still have the old URL.
func peerURLOf(r *round.Round, h record.Host) string {
	m, listed := r.Membership.Recognize(uint64(h.MemberID), h.PeerURL)
	if !listed || len(m.PeerURLs) == 0 || slices.Contains(m.PeerURLs, h.PeerURL) {
		return h.PeerURL
	}
	return m.PeerURLs[0]
}

// answered reports whether a host has published its health state and its observations since the record of the operation
// last changed. For this host's own operation, this host's current observations count as its answer.
func (b *Builder) answered(r *round.Round, h record.Host) bool {
	if h.ID == b.config.Host.ID && r.Op.Of(h.ID) && (policy.NeedsDeadReports(r.Op.Kind) || r.AsksConnections()) {
		return r.AskedSince != 0 && r.AnswersNow()
	}
	return r.OpAt != 0 && h.Answers == r.OpAt
}

// unreached returns what a host reports about members that it does not reach. For this host, its current observations
// count.
func (b *Builder) unreached(r *round.Round, h record.Host) string {
	if h.ID != b.config.Host.ID {
		return h.Unreached
	}
	own, _ := r.OwnMember(r.Membership, b.config.Etcd.PeerURL)
	return r.Unreached(own.ID)
}

// ours reports whether a record is from this agent, or from an earlier one on this host that could not delete it, for
// example because of a power loss.
func (b *Builder) ours(r *round.Round, instance string) bool {
	return instance == b.instance || slices.Contains(r.Noted.Instances, instance)
}

// records builds the view of the hosts, the lock, the pause, the join queue and the retirements.
func (b *Builder) records(v *policy.View, r *round.Round) {
	v.Hosts = b.hosts(r)
	v.Lock = policy.Lock{Known: true, Token: r.LockAt}
	if r.Lock != nil {
		v.Lock.Held, v.Lock.Holder = true, r.Lock.Name
		v.Lock.Mine = r.Did.Token != 0 && r.Did.Token == r.LockAt
		v.Lock.ValidFor = r.Did.ValidFor(r.ViewedAt)
	}
	if r.Pause != nil { // ignore the wall clock, which may be wrong: the record expires with its lease
		v.Pause = &policy.Pause{By: r.Pause.By, Reason: r.Pause.Reason}
	}
	if r.Queue != nil {
		v.Queue = &policy.Queue{Hosts: r.Queue.Hosts, Next: r.Queue.Next, Down: r.Queue.Down}
	}
	for _, retired := range r.Retired {
		v.Retired = append(v.Retired, retired.Policy())
	}
}

// signature returns a string that changes with the members, their peer URLs, or which of them are learners.
func signature(list cluster.Membership) string {
	var b []byte
	for _, m := range list.Members {
		b = strconv.AppendBool(append(strconv.AppendUint(b, m.ID, 16), ' '), m.Learner)
		for _, url := range m.PeerURLs {
			b = append(append(b, ' '), url...)
		}
		b = append(b, ';')
	}
	return string(b)
}
