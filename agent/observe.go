// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/systemd"
)

// round is everything that one turn of the loop has seen and decided. It is not changed once it
// is published.
type round struct {
	number     uint64
	at         time.Duration
	wall       time.Time
	view       policy.View
	decision   policy.Decision
	membership cluster.Membership
	statuses   map[uint64]cluster.Status
	hosts      []record.Host
	ownHost    *record.Host // our own key's record, whoever wrote it
	ownHostAt  int64        // and its modification revision
	op         *record.Op
	opAt       int64 // its modification revision
	lock       *record.Lock
	lockAt     int64 // its create revision: the token
	pause      *record.Pause
	revision   int64 // of the store when the records were read
	unit       systemd.Status
	unitErr    error
	verdict    health.Verdict
	reading    disk.Reading
	probed     time.Duration // when it was judged, by the probe's clock
	boot       *bootstrapRequest
	// stepsBefore counts the steps that this process had taken before this round.
	stepsBefore uint64
	// reasonFor gives for how long each of the decision's reasons has stood.
	reasonFor map[policy.ReasonCode]time.Duration
}

// How often things that seldom change are looked at, in intervals of the loop; and how old they
// may grow.
const (
	clockEvery  = 5
	dataEvery   = 2
	binaryEvery = 30
	maxAge      = 5 // in turns of their own rhythm
)

// lookTimeout bounds a look that may hang with the disk.
const lookTimeout = 5 * time.Second

// observe makes the round's view.
func (a *Agent) observe(ctx context.Context) *round {
	c := a.opt.Config
	r := &round{number: a.rounds, at: a.opt.Now(), wall: a.opt.Wall(), boot: a.files.bootstrap(), stepsBefore: a.steps}
	v := &r.view
	v.Limits = a.limits
	v.Target = policy.Target{Voters: c.Cluster.Voters, Standbys: c.Cluster.Standbys}
	v.Self = policy.Self{ID: c.Host.ID, Name: c.Host.Name, PeerURL: c.Etcd.PeerURL, Mode: policy.Mode(c.Mode)}
	v.Failed = a.failed
	v.PromotionPending = a.promoted.value != "" && r.at-a.promoted.at < c.Timing.LockTTL

	a.observeCluster(ctx, r)
	a.observeRecords(ctx, r)
	a.observeUnit(ctx, r)
	a.observeData(ctx, r)
	a.observeVersion(ctx, r)
	a.observeClock(ctx, r)
	a.observeHealth(r)

	id, member := a.files.membership()
	v.Self.MemberID = member
	v.Bootstrap = policy.Bootstrap{Requested: r.boot != nil, Done: id != 0}
	v.Cluster.ExpectedID = id
	if want := c.Cluster.ID; want != "" {
		_, _ = fmt.Sscanf(want, "%x", &v.Cluster.ExpectedID) // the configuration is checked
	}
	v.Backoff = a.files.backoff(a.opt.BootID, r.at, c.Timing.JoinBackoff)
	if a.running != nil {
		v.Stuck = a.running.text(r.at)
	}
	v.Self.Conflict = a.presence.conflict(r)
	if v.Cluster.Reachable {
		a.noteMembership(ctx, r)
		a.noteHold(ctx, r)
	}
	return r
}

// decide asks the policy, and measures for how long its reasons have stood.
func (a *Agent) decide(r *round) {
	r.decision = policy.Decide(r.view)
	r.reasonFor = map[policy.ReasonCode]time.Duration{}
	for _, reason := range r.decision.Reasons {
		r.reasonFor[reason.Code] = a.since.of("reason/"+string(reason.Code), "", r.at, r.number)
	}
	a.since.forget(r.number)
}

// noteMembership records on disk which member of which cluster this host is, and when it is none
// any more. It is written beside the loop: the disk may hang.
func (a *Agent) noteMembership(ctx context.Context, r *round) {
	v := &r.view
	if v.Data.State != policy.DataMember || (v.Cluster.ExpectedID != 0 && v.Cluster.ExpectedID != v.Cluster.ID) || v.Data.ClusterID != v.Cluster.ID {
		return
	}
	var member uint64
	if m, ok := r.membership.ByID(v.Data.MemberID); ok {
		member = m.ID
	}
	cluster, known := a.files.membership()
	if (cluster == v.Cluster.ID && known == member) || (cluster == 0 && member == 0) {
		return
	}
	a.noted.refresh(ctx, a.opt.Now, noteEvery, lookTimeout, func(context.Context) (struct{}, error) {
		err := a.files.setMembership(v.Cluster.ID, member)
		if err != nil {
			a.log.Error("membership not recorded", "error", err)
		}
		return struct{}{}, err
	})
}

// noteEvery is how often it is tried to record the membership.
const noteEvery = 2 * time.Second

// observeCluster reads the member list and asks every member.
func (a *Agent) observeCluster(ctx context.Context, r *round) {
	v := &r.view
	listCtx, cancel := context.WithTimeout(ctx, 2*a.opt.Config.Timing.CallTimeout)
	defer cancel()
	list, err := a.opt.Etcd.Members(listCtx)
	if err != nil {
		v.Cluster.Error = a.explain(ctx, err)
		return
	}
	r.membership = list
	asked := slices.Clone(list.Members)
	for i, m := range asked {
		if slices.Contains(m.PeerURLs, v.Self.PeerURL) && len(m.ClientURLs) == 0 && a.ran() {
			asked[i].ClientURLs = []string{a.opt.Config.Etcd.ClientURL} // not published yet
		}
	}
	r.statuses = a.opt.Etcd.Statuses(ctx, asked)
	v.Cluster.Reachable, v.Cluster.Listed, v.Cluster.ID = true, true, list.ClusterID
	v.Cluster.StableFor = a.since.of("membership", signature(list), r.at, r.number)
}

// ran tells whether the local unit ran in the round before.
func (a *Agent) ran() bool {
	before := a.current.Load()
	return before != nil && before.view.Unit.State == policy.UnitActive
}

// explain makes of an unreachable cluster a text that names the layer which fails.
func (a *Agent) explain(ctx context.Context, err error) string {
	endpoints := a.opt.Config.Cluster.Endpoints
	whys := make([]error, len(endpoints))
	var wait sync.WaitGroup
	for i, endpoint := range endpoints {
		wait.Go(func() { whys[i] = a.opt.Etcd.Diagnose(ctx, endpoint) })
	}
	wait.Wait()
	i := telling(whys, int(a.rounds)%len(endpoints))
	if whys[i] != nil {
		return fmt.Sprintf("no voter answers; %s: %v", endpoints[i], whys[i])
	}
	if reason := lastLine(err); reason != "" {
		return "no voter answers: " + reason
	}
	return "no voter answers"
}

// telling finds the endpoint whose failure says most: one that accepts connections and then fails,
// or else the one whose turn it is. A host that is no member always finds its own endpoint closed.
func telling(whys []error, turn int) int {
	for i, why := range whys {
		op, ok := errors.AsType[*net.OpError](why)
		closed := ok && op.Op == "dial"
		if why != nil && !closed {
			return i
		}
	}
	return turn
}

func lastLine(err error) string {
	text := strings.TrimSpace(err.Error())
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// signature tells one member list from another.
func signature(list cluster.Membership) string {
	var b strings.Builder
	for _, m := range list.Members {
		fmt.Fprintf(&b, "%x %v %v;", m.ID, m.Learner, m.PeerURLs)
	}
	return b.String()
}

// viewMembers makes the view's members of the list and the answers. It comes after the records,
// because a pause stops the clocks of learners.
func (a *Agent) viewMembers(r *round) {
	v := &r.view
	var leader, term uint64
	for _, s := range r.statuses {
		if s.Err == nil && s.Leader != 0 && s.Term >= term {
			leader, term = s.Leader, s.Term
		}
		v.Cluster.DBSize = max(v.Cluster.DBSize, uint64(max(0, s.DBSize)))
	}
	head, listed := r.statuses[leader]
	headKnown := listed && head.Err == nil && head.Leader == leader
	for _, m := range r.membership.Members {
		s := r.statuses[m.ID]
		member := policy.Member{
			ID: m.ID, Name: m.Name, PeerURL: first(m.PeerURLs), Learner: m.Learner,
			Leader: m.ID == leader, ThinksLearner: s.Learner, Version: policy.ParseVersion(s.Version),
			Live:   s.Err == nil && s.MemberID == m.ID && s.Leader != 0 && (m.Learner || s.Linearizable),
			Errors: len(s.Errors) > 0,
		}
		if slices.Contains(m.PeerURLs, v.Self.PeerURL) {
			member.PeerURL = v.Self.PeerURL
		}
		if s.Err == nil && headKnown {
			member.LagKnown = true
			member.Lag = max(head.Index, s.Applied) - s.Applied
		}
		a.since.trackMember(&member, s.Applied, v.Limits, v.Pause != nil, r.at, r.number)
		v.Cluster.Members = append(v.Cluster.Members, member)
	}
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// observeRecords reads all of quorumd's own records in one read.
func (a *Agent) observeRecords(ctx context.Context, r *round) {
	v := &r.view
	if !v.Cluster.Reachable {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*a.opt.Config.Timing.CallTimeout)
	defer cancel()
	start, end := a.keys.State()
	found, err := a.opt.Etcd.Read(ctx, cluster.Span{Start: start, End: end})
	if err == nil {
		err = a.parseRecords(r, found)
	}
	if err != nil { // half a picture is none
		v.Cluster.Reachable, v.Cluster.Error = false, err.Error()
		v.Hosts, v.Op, v.Pause, v.Lock = nil, nil, nil, policy.Lock{}
		return
	}
	a.checkLock(ctx, r)
	a.viewMembers(r)
	v.FreeFor = a.since.truth("free", r.op == nil && r.lock == nil, r.at, r.number)
	v.IdleFor = a.since.truth("idle", r.op == nil, r.at, r.number)
	a.viewOp(r)
}

// checkLock gives a lock up that a linearizable read shows to be gone, though its lease may live.
func (a *Agent) checkLock(ctx context.Context, r *round) {
	if token := a.lock.Token(); token != 0 && token != r.lockAt {
		a.log.Warn("lock is gone", "token", token)
		_ = a.lock.Release(ctx) // the lease ends by itself if this cannot be told to etcd
		r.view.Lock.Mine = false
	}
}

func (a *Agent) parseRecords(r *round, found cluster.Range) error {
	r.revision = found.Revision
	for _, pair := range found.Pairs {
		var err error
		switch {
		case strings.HasPrefix(pair.Key, a.keys.Hosts()):
			var h record.Host
			if h, err = record.Decode[record.Host](pair.Value); err == nil {
				r.hosts = append(r.hosts, h)
			} else {
				a.log.Debug("host record not read", "key", pair.Key, "error", err)
				err = nil // a host that speaks another format is not counted on
			}
			if pair.Key == a.keys.Host(a.opt.Config.Host.ID) {
				r.ownHost, r.ownHostAt = &h, pair.ModRevision
			}
		case pair.Key == a.keys.Lock():
			r.lock, err = decode[record.Lock](pair.Value)
			r.lockAt = pair.CreateRevision
		case pair.Key == a.keys.Op():
			r.op, err = decode[record.Op](pair.Value)
			r.opAt = pair.ModRevision
		case pair.Key == a.keys.Pause():
			r.pause, err = decode[record.Pause](pair.Value)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", pair.Key, err)
		}
	}
	a.viewRecords(r)
	return nil
}

func decode[T record.Host | record.Lock | record.Op | record.Pause | record.Line](b []byte) (*T, error) {
	value, err := record.Decode[T](b)
	return &value, err
}

func (a *Agent) viewRecords(r *round) {
	v := &r.view
	for _, h := range r.hosts {
		state, err := health.ParseState(h.Health)
		if err != nil {
			state = health.Unknown
		}
		v.Hosts = append(v.Hosts, policy.Host{
			ID: h.ID, Name: h.Name, Domain: h.Domain, PeerURL: h.PeerURL, Role: policy.Role(h.Role), Health: state,
			Qualified: h.Qualified, Manage: h.Mode == string(policy.Manage), Waiting: policy.ReasonCode(h.Waiting),
			P99: time.Duration(h.FsyncP99 * float64(time.Second)),
		})
	}
	token := a.lock.Token()
	v.Lock = policy.Lock{Known: true, Token: r.lockAt}
	if r.lock != nil {
		v.Lock.Held, v.Lock.Holder = true, r.lock.Name
		v.Lock.Mine = token != 0 && token == r.lockAt
		v.Lock.ValidFor = a.lock.ValidFor()
	}
	if r.pause != nil { // it lies under a lease that ends with it: wall clocks may be wrong
		v.Pause = &policy.Pause{By: r.pause.By, Reason: r.pause.Reason}
	}
}

// viewOp makes the view's operation.
func (a *Agent) viewOp(r *round) {
	if r.op == nil {
		return
	}
	op := r.op
	own := op.Host == a.opt.Config.Host.ID
	view := &policy.Op{
		Kind: op.Kind, Host: op.Host, HostName: op.HostName, Target: policy.Role(op.Target),
		Phase: policy.OpPhase(op.Phase), Token: op.Token, MemberID: uint64(op.MemberID), PeerURL: op.PeerURL,
		Reason: op.Reason, SameBoot: !own || op.BootID == a.opt.BootID,
	}
	name := "op/" + op.Host + op.Started.String()
	view.Elapsed = a.since.of(name, "", r.at, r.number)
	if own && view.SameBoot && op.Clock > 0 {
		view.Elapsed = r.at - op.Clock // also across a restart of the agent
	}
	orphaned := r.lock == nil || r.lockAt != op.Token
	view.OrphanedFor = a.since.truth(name+"/orphaned", orphaned, r.at, r.number)
	view.WrittenFor = a.since.of(name+"/written", fmt.Sprint(r.opAt), r.at, r.number)
	r.view.Op = view
}
