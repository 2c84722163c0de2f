// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/recovery"
)

// RecoveryFacts returns this host's facts for a recovery plan.
func (o *Operator) RecoveryFacts(ctx context.Context) (recovery.Facts, error) {
	const cannot = "cannot collect the facts: "
	r, err := o.current(cannot)
	if err != nil {
		return recovery.Facts{}, err
	}
	if o.opt.Data == nil {
		return recovery.Facts{}, errors.New(cannot + "this agent cannot access etcd's files")
	}
	c := o.opt.Config
	f := recovery.Facts{
		Version: recovery.Version, HostID: c.Host.ID, Host: c.Host.Name, Cluster: c.Cluster.Name,
		PeerURL: c.Etcd.PeerURL, DataDir: c.Etcd.DataDir, Boot: o.opt.BootID, Quorumd: o.opt.Version,
		Taken:  o.opt.Wall().UTC(),
		Quorum: r.View.Cluster.Reachable || r.View.Cluster.Listed, Known: record.MemberID(r.Noted.Cluster),
	}
	remembered := o.opt.Files.Manifests()
	f.Manifests = remembered[max(0, len(remembered)-recovery.MaxManifests):]
	f.Plans = appliedPlans(o.opt.Files.Recoveries())
	if r.View.Self.Etcd.Known() {
		f.Etcd = r.View.Self.Etcd.String()
	}
	if last := o.opt.Rounds.Reached(); last != nil {
		f.Members = membersOf(last.Membership)
		if !f.Quorum {
			f.Lost = last.Wall.UTC()
		}
	}
	switch f.Log, err = o.opt.Data.Read(ctx); {
	case errors.Is(err, recovery.ErrReading):
		return f, refuse(control.NotNow, control.CodeReading, cannot+err.Error(),
			"retry: the collection continues meanwhile")
	case err != nil:
		return f, refuse(control.NotNow, string(policy.DataUnusable), cannot+err.Error(),
			"if this host's data is unreadable, it cannot be used for recovery: mark the host as gone (--gone)")
	}
	return f.Sealed(), nil
}

// appliedPlans returns the plan in force on this host, and the last plan if it was not completed.
func appliedPlans(inForce *hoststate.Recovery, last *control.RecoveryEnd) (all []recovery.AppliedPlan) {
	if inForce != nil {
		all = append(all, appliedPlan(inForce.Recovery, inForce.GivenUp != ""))
	}
	if last != nil && last.Code != policy.Recovered {
		all = append(all, appliedPlan(last.Recovery, true))
	}
	return all
}

func appliedPlan(plan control.Recovery, givenUp bool) recovery.AppliedPlan {
	return recovery.AppliedPlan{ID: plan.Plan, Survivor: plan.Survivor, GivenUp: givenUp, At: plan.Since.UTC()}
}

func membersOf(list cluster.Membership) []recovery.Member {
	var out []recovery.Member
	for _, m := range list.Members {
		one := recovery.Member{ID: record.MemberID(m.ID), Name: m.Name, Learner: m.Learner}
		if len(m.PeerURLs) > 0 {
			one.PeerURL = m.PeerURLs[0]
		}
		out = append(out, one)
	}
	return out
}

// ApplyRecovery puts a plan in force on this host if the plan's facts about this host still hold and there is no
// quorum.
func (o *Operator) ApplyRecovery(ctx context.Context, plan recovery.Plan, by string) (control.Recovery, error) {
	const cannot = "cannot apply the plan: "
	inForce, last := o.opt.Files.Recoveries()
	switch {
	case inForce != nil && inForce.Plan == plan.ID:
		return inForce.Recovery, nil
	case last != nil && last.Plan == plan.ID && last.Code == policy.Recovered:
		done := last.Recovery
		done.Done = true
		return done, nil
	}
	now, err := o.RecoveryFacts(ctx)
	if err != nil {
		return control.Recovery{}, err
	}
	against := policy.AgainstRecovery(o.opt.Rounds.Current().View, o.opt.Config.Cluster.ID)
	if err := refused(cannot, against); err != nil {
		return control.Recovery{}, err
	}
	if text := plan.Refused(now, o.opt.Wall()); text != "" {
		return control.Recovery{}, refuse(control.Conflicts, control.CodeConflict, cannot+text,
			"quorumctl status; if the quorum is still lost, collect the facts on every host again and make a new plan")
	}
	next := noteOf(plan, now, by, o)
	against = policy.AgainstSnapshot(next.Source != nil && next.Source.Name != "", o.opt.Snapshots != nil)
	if err := refused(cannot, against); err != nil {
		return control.Recovery{}, err
	}
	err = onDisk(ctx, cannot, func() (*policy.Refusal, error) { return o.opt.Files.BeginRecovery(next) })
	if err != nil {
		return control.Recovery{}, err
	}
	o.opt.Logger.Warn("operator action", "code", "RECOVERY_APPLIED", "text", "plan "+plan.ID+" applied by "+by)
	o.opt.Wake()
	return next.Recovery, nil
}

// AbandonRecovery abandons the plan in force on this host. It is refused after the host has begun to move its data
// aside.
func (o *Operator) AbandonRecovery(ctx context.Context, by string) (control.Recovery, error) {
	const cannot = "cannot abandon the plan: "
	var inForce *hoststate.Recovery
	err := onDisk(ctx, cannot, func() (against *policy.Refusal, err error) {
		inForce, against, err = o.opt.Files.GiveUp(by)
		return against, err
	})
	if err != nil {
		return control.Recovery{}, err
	}
	if o.opt.Data != nil {
		o.opt.Data.Abandon()
	}
	o.opt.Logger.Warn("operator action", "code", policy.RecoveryGivenUp, "text",
		"plan "+inForce.Plan+" abandoned by "+by)
	o.opt.Wake()
	return inForce.Recovery, nil
}

// noteOf returns this host's part of a plan.
func noteOf(plan recovery.Plan, now recovery.Facts, by string, o *Operator) hoststate.Recovery {
	note := hoststate.Recovery{
		Recovery: control.Recovery{
			Plan: plan.ID, Old: plan.Old, New: plan.New, Survivor: plan.FactsOf(plan.Survivor).Host,
			Alone: plan.Survivor == now.HostID, By: by, Since: o.opt.Wall().UTC(),
		},
		Member: now.Log.Member, Term: now.Log.Term, Index: now.Log.Index,
	}
	if note.Alone && plan.Snapshot != nil {
		note.Source, note.Member, note.Snapshot = plan.Snapshot, plan.Snapshot.Member, plan.Snapshot.String()
	}
	return note
}
