// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/systemd"
)

// viewEtcd makes the view of what was seen. It may be made twice in a round.
func (a *Agent) viewEtcd(ctx context.Context, r *round) {
	v := &r.view
	v.Cluster = policy.Cluster{Reachable: r.reachable, Listed: r.listed, Error: r.problem, Denied: r.denied}
	v.Hosts, v.Op, v.Pause, v.Lock, v.Unreadable = nil, nil, nil, policy.Lock{}, r.unreadable
	v.Resting, v.Looked = !a.pace.attends, r.hostsAt == r.at && r.reachable
	if r.listed {
		v.Cluster.ID = r.membership.ClusterID
		v.Cluster.StableFor = a.since.of("membership", signature(r.membership), r.at, r.number)
	}
	if !r.reachable {
		return
	}
	a.viewRecords(r)
	a.checkLock(ctx, r)
	a.viewMembers(r)
	if before := a.current.Load(); before != nil && r.at-before.etcdAt > blink*a.opt.Config.Timing.Interval {
		a.since.truth("idle", false, r.at, r.number) // an operation may have begun and ended unseen
	}
	v.IdleFor = min(a.since.truth("idle", r.opAt == 0, r.at, r.number),
		a.since.of("ended", fmt.Sprint(r.endedAt), r.at, r.number))
	a.viewOp(r)
	a.viewTurn(r)
	a.viewHooks(ctx, r)
	v.FreeFor = a.since.truth("free", r.opAt == 0 && r.lock == nil && policy.PlaceFree(*v), r.at, r.number)
}

// blink is for how many intervals a host may not look and still count what it saw before and after
// as one stretch.
const blink = 5

// checkLock gives a lock up that a linearizable read shows to be gone, though its lease may live.
func (a *Agent) checkLock(ctx context.Context, r *round) {
	if token := a.lock.Token(); token != 0 && token != r.lockAt {
		a.log.Warn("lock is gone", "token", token)
		_ = a.lock.Release(ctx) // the lease ends by itself if this cannot be told to etcd
		r.view.Lock.Mine = false
	}
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
			ID: m.ID, Name: m.Name, PeerURL: firstOf(m.PeerURLs), Learner: m.Learner,
			Leader: m.ID == leader, ThinksLearner: s.Learner, Version: a.version(s.Version), RTT: s.RTT,
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
		if r.statusesAt == r.at { // durations are of answers, not of what was carried over
			a.since.trackMember(&member, s.Applied, v.Limits, v.Pause != nil, r.at, r.number)
		}
		v.Cluster.Members = append(v.Cluster.Members, member)
	}
}

// version reads a member's version, which is mostly one that was read before.
func (a *Agent) version(text string) policy.Version {
	v, known := a.versions[text]
	if !known {
		if v = policy.ParseVersion(text); len(a.versions) < versionsKept {
			a.versions[text] = v
		}
	}
	return v
}

// versionsKept bounds what is remembered of them: a cluster runs two at a time.
const versionsKept = 16

func firstOf(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// viewHosts makes the view of the hosts, beside an operation of which the record was modified at that revision.
func (a *Agent) viewHosts(hosts []record.Host, opAt int64, freed released) []policy.Host {
	out := make([]policy.Host, 0, len(hosts))
	for _, h := range hosts {
		state, err := health.ParseState(h.Health)
		if err != nil {
			state = health.Unknown
		}
		out = append(out, policy.Host{
			ID: h.ID, Name: h.Name, Domain: h.Domain, PeerURL: h.PeerURL, Role: policy.Role(h.Role), Health: state,
			Qualified: h.Qualified, Manage: h.Mode == string(policy.Manage), Waiting: policy.ReasonCode(h.Waiting),
			P99:   time.Duration(h.FsyncP99 * float64(time.Second)),
			Wants: policy.Work(h.Wants), AskedAt: h.AskedAt, Answered: opAt != 0 && h.Answers == opAt,
			Turn: !h.Turn.IsZero() && !freed.frees(h.ID, h.Turn),
			Own:  h.ID == a.opt.Config.Host.ID && a.presence.mine(h),
		})
	}
	return out
}

func (a *Agent) viewRecords(r *round) {
	v := &r.view
	v.Hosts = a.viewHosts(r.hosts, r.opAt, r.released)
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
		Overdue: overdue(op.Until, r.wall),
	}
	running := r.unitErr == nil && r.unit.State == systemd.Active && r.unit.Job == ""
	view.Restarted = own && running && (!view.SameBoot ||
		(op.Clock > 0 && r.unit.Since > 0 && r.at-r.unit.Since > op.Clock))
	name := "op/" + op.Host + op.Started.String()
	view.Elapsed = a.since.of(name, "", r.at, r.number)
	if own && view.SameBoot && op.Clock > 0 {
		view.Elapsed = r.at - op.Clock // also across a restart of the agent
	}
	orphaned := r.lock == nil || r.lockAt != op.Token
	// Of that token: an agent that was asleep may have missed that somebody took the operation over meanwhile.
	view.OrphanedFor = a.since.truth(fmt.Sprintf("%s/orphaned of %d", name, op.Token), orphaned, r.at, r.number)
	view.WrittenFor = a.since.of(name+"/written", fmt.Sprint(r.opAt), r.at, r.number)
	r.view.Op = view
}

// overdue tells whether that time is over; one that is zero never is.
func overdue(until, now time.Time) bool { return !until.IsZero() && now.After(until) }
