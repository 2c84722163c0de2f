// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

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
func (a *Agent) observe(ctx context.Context) *round.Round {
	c := a.opt.Config
	r := &round.Round{
		Number: a.rounds, At: a.opt.Now(), Wall: a.opt.Wall(), Bootstrap: a.files.Bootstrap(), Did: a.actor.Did(),
	}
	r.StepsBefore = r.Did.Steps
	v := &r.View
	v.Limits = a.limits
	v.Target = policy.Target{Voters: c.Cluster.Voters, Standbys: c.Cluster.Standbys}
	v.Self = policy.Self{
		ID: c.Host.ID, Name: c.Host.Name, PeerURL: c.Etcd.PeerURL, Mode: policy.Mode(c.Mode),
		Binary: c.Etcd.Binary,
	}
	v.Failed, v.Stuck = r.Did.Failed, r.Did.Stuck
	v.PromotionPending = r.Did.Promoted.Age(r.At) < c.Timing.LockTTL

	id, member := a.files.Membership()
	v.Self.MemberID = member
	v.Bootstrap = policy.Bootstrap{Requested: r.Bootstrap != nil, Done: id != 0, Seen: a.files.LastSeen()}
	v.Backoff = a.files.Backoff(a.opt.BootID, r.At, c.Timing.JoinBackoff)
	a.viewAsked(ctx, r)
	a.viewRemoval(r)
	a.observeUnit(ctx, r)
	a.observeEtcd(ctx, r)
	a.observeData(ctx, r)
	a.observeVersion(ctx, r)
	a.observeClock(ctx, r)
	a.observeHealth(r)
	a.combine(r)
	return r
}

// confirm observes etcd anew, and completely, in a round that has found a step on something that was
// carried over: a step is decided on one picture, and that is of now.
func (a *Agent) confirm(ctx context.Context, r *round.Round) {
	a.askEtcd(ctx, r, look{etcd: true, members: true, hosts: true})
	a.viewEtcd(ctx, r)
	a.observeClock(ctx, r)
	a.combine(r)
}

// combine fills in what is seen only where etcd and the host are seen together.
func (a *Agent) combine(r *round.Round) {
	v := &r.View
	v.Cluster.ExpectedID, _ = a.files.Membership()
	if want := a.opt.Config.Cluster.ID; want != "" {
		_, _ = fmt.Sscanf(want, "%x", &v.Cluster.ExpectedID) // the configuration is checked
	}
	r.Environment = a.wantedEnvironment(r)
	v.Unit.EnvReady = r.Did.Environment != nil && maps.Equal(r.Did.Environment, r.Environment)
	v.Self.Conflict = policy.Conflict(*v)
	a.viewStandbys(r)
	if r.Removal != nil { // one that was released must not begin again while its end is written
		v.Removal.Over = !r.Wall.Before(r.Removal.Until) || r.Removal.Begun && !a.removes(r)
	}
}

// decide asks the policy, and measures for how long its reasons have stood.
func (a *Agent) decide(r *round.Round) {
	r.Decision = policy.Decide(r.View)
	r.ReasonFor = map[policy.ReasonCode]time.Duration{}
	for _, reason := range r.Decision.Reasons {
		r.ReasonFor[reason.Code] = a.since.of("reason/"+string(reason.Code), "", r.At, r.Number)
	}
	a.since.forget(r.Number)
}

// noteMembership records on disk which member of which cluster this host is, and when it is none
// any more. It is written beside the loop: the disk may hang.
func (a *Agent) noteMembership(ctx context.Context, r *round.Round) {
	v := &r.View
	if v.Data.State != policy.DataMember || (v.Cluster.ExpectedID != 0 && v.Cluster.ExpectedID != v.Cluster.ID) ||
		v.Data.ClusterID != v.Cluster.ID {
		return
	}
	var member uint64
	if m, ok := r.Membership.ByID(v.Data.MemberID); ok {
		member = m.ID
	}
	cluster, known := a.files.Membership()
	if (cluster == v.Cluster.ID && known == member) || (cluster == 0 && member == 0) {
		return
	}
	id := v.Cluster.ID // the view is made anew when the round is confirmed, while this runs
	a.noted.Refresh(ctx, a.opt.Now, noteEvery, lookTimeout, func(context.Context) (struct{}, error) {
		a.opt.noting("membership")
		err := a.files.SetMembership(id, member)
		if err != nil {
			a.log.Error("membership not recorded", "error", err)
		}
		return struct{}{}, err
	})
}

// noteEvery is how often it is tried to record the membership.
const noteEvery = 2 * time.Second

// ran tells whether the local unit ran in the round before.
func (a *Agent) ran() bool {
	before := a.current.Load()
	return before != nil && before.View.Unit.State == policy.UnitActive
}

// explain makes of an unreachable cluster an error that names the layer which fails.
func (a *Agent) explain(ctx context.Context, err error) error {
	endpoints := a.opt.Config.Cluster.Endpoints
	whys := make([]error, len(endpoints))
	var wait sync.WaitGroup
	for i, endpoint := range endpoints {
		wait.Go(func() { whys[i] = a.opt.Etcd.Diagnose(ctx, endpoint) })
	}
	wait.Wait()
	i := telling(whys, int(a.rounds)%len(endpoints))
	if whys[i] != nil {
		return fmt.Errorf("no voter answers; %s: %w", endpoints[i], whys[i])
	}
	return err // every connection can be made: it tells what became of each call
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

// signature tells one member list from another.
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
