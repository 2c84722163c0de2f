// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/systemd"
)

// viewEtcd makes the view of what was seen. It may be made twice in a round.
func (a *Agent) viewEtcd(ctx context.Context, r *round.Round) {
	v := &r.View
	v.Cluster = policy.Cluster{
		Reachable: r.Reachable, Listed: r.Listed, Fresh: r.EtcdAt == r.At, Error: r.Problem, Denied: r.Denied,
	}
	v.Hosts, v.Op, v.Pause, v.Rollout, v.Lock, v.Unreadable = nil, nil, nil, nil, policy.Lock{}, r.Unreadable
	v.Resting, v.Looked = !a.pace.attends, r.HostsAt == r.At && r.Reachable
	if r.Listed {
		v.Cluster.ID = r.Membership.ClusterID
		v.Cluster.StableFor = a.since.of("membership", signature(r.Membership), r.At, r.Number)
	}
	if !r.Reachable {
		return
	}
	a.viewRecords(r)
	a.viewMembers(r)
	if before := a.current.Load(); before != nil && r.At-before.EtcdAt > blink*a.opt.Config.Timing.Interval {
		a.since.truth("idle", false, r.At, r.Number) // an operation may have begun and ended unseen
	}
	v.IdleFor = min(a.since.truth("idle", r.OpAt == 0, r.At, r.Number),
		a.since.of("ended", fmt.Sprint(r.EndedAt), r.At, r.Number))
	a.viewOp(r)
	a.viewTurn(r)
	a.viewRollout(r)
	a.viewHooks(ctx, r)
	v.FreeFor = a.since.truth("free", r.OpAt == 0 && r.Lock == nil && policy.PlaceFree(*v), r.At, r.Number)
}

// blink is for how many intervals a host may not look and still count what it saw before and after
// as one stretch.
const blink = 5

// viewMembers makes the view's members of the list and the answers. It comes after the records,
// because a pause stops the clocks of learners.
func (a *Agent) viewMembers(r *round.Round) {
	v := &r.View
	var leader, term uint64
	for _, s := range r.Statuses {
		if s.Err == nil && s.Leader != 0 && s.Term >= term {
			leader, term = s.Leader, s.Term
		}
		v.Cluster.DBSize = max(v.Cluster.DBSize, uint64(max(0, s.DBSize)))
	}
	head, listed := r.Statuses[leader]
	headKnown := listed && head.Err == nil && head.Leader == leader
	for _, m := range r.Membership.Members {
		s := r.Statuses[m.ID]
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
		if r.StatusesAt == r.At { // durations are of answers, not of what was carried over
			a.since.trackMember(&member, s.Applied, v.Limits, v.Pause != nil, r.At, r.Number)
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
func (a *Agent) viewHosts(hosts []record.Host, opAt int64, freed round.Released) []policy.Host {
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
			Turn: !h.Turn.IsZero() && !freed.Frees(h.ID, h.Turn),
			Own:  h.ID == a.opt.Config.Host.ID && a.presence.Mine(h),
		})
	}
	return out
}

func (a *Agent) viewRecords(r *round.Round) {
	v := &r.View
	v.Hosts = a.viewHosts(r.Hosts, r.OpAt, r.Released)
	v.Lock = policy.Lock{Known: true, Token: r.LockAt}
	if r.Lock != nil {
		v.Lock.Held, v.Lock.Holder = true, r.Lock.Name
		v.Lock.Mine = r.Did.Token != 0 && r.Did.Token == r.LockAt
		v.Lock.ValidFor = r.Did.ValidFor(a.opt.Now())
	}
	if r.Pause != nil { // it lies under a lease that ends with it: wall clocks may be wrong
		v.Pause = &policy.Pause{By: r.Pause.By, Reason: r.Pause.Reason}
	}
}

// viewOp makes the view's operation.
func (a *Agent) viewOp(r *round.Round) {
	if r.Op == nil {
		return
	}
	op := r.Op
	own := op.Host == a.opt.Config.Host.ID
	view := &policy.Op{
		Kind: op.Kind, Host: op.Host, HostName: op.HostName, Target: policy.Role(op.Target),
		Phase: policy.OpPhase(op.Phase), Token: op.Token, MemberID: uint64(op.MemberID), PeerURL: op.PeerURL,
		Reason: op.Reason, Outcome: outcomeOf(op), SameBoot: !own || op.BootID == a.opt.BootID,
		Overdue: overdue(op.Until, r.Wall),
	}
	running := r.UnitErr == nil && r.Unit.State == systemd.Active && r.Unit.Job == ""
	view.Restarted = own && running && (!view.SameBoot ||
		(op.Clock > 0 && r.Unit.Since > 0 && r.At-r.Unit.Since > op.Clock))
	name := "op/" + op.Host + op.Started.String()
	view.Elapsed = a.since.of(name, "", r.At, r.Number)
	if own && view.SameBoot && op.Clock > 0 {
		view.Elapsed = r.At - op.Clock // also across a restart of the agent
	}
	orphaned := r.Lock == nil || r.LockAt != op.Token
	// Of that token: an agent that was asleep may have missed that somebody took the operation over meanwhile.
	view.OrphanedFor = a.since.truth(fmt.Sprintf("%s/orphaned of %d", name, op.Token), orphaned, r.At, r.Number)
	view.WrittenFor = a.since.of(name+"/written", fmt.Sprint(r.OpAt), r.At, r.Number)
	r.View.Op = view
}

// overdue tells whether that time is over; one that is zero never is.
func overdue(until, now time.Time) bool { return !until.IsZero() && now.After(until) }

// outcomeOf gives the code with which an operation is rolled back. An older agent has written it into the reason only.
func outcomeOf(op *record.Op) policy.ReasonCode {
	if op.Outcome != "" || policy.OpPhase(op.Phase) != policy.PhaseRollback {
		return policy.ReasonCode(op.Outcome)
	}
	code, _, _ := strings.Cut(op.Reason, ": ")
	return policy.ReasonCode(code)
}
