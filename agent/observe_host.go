// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/systemd"
)

// observeUnit asks for the state of the local etcd unit.
func (a *Agent) observeUnit(ctx context.Context, r *round.Round) {
	ctx, cancel := context.WithTimeout(ctx, a.opt.Config.Timing.CallTimeout)
	defer cancel()
	r.Unit, r.UnitErr = a.opt.Unit.Status(ctx)
	u := &r.View.Unit
	u.SinceStart = r.Did.Started.Age(r.At)
	switch {
	case errors.Is(r.UnitErr, systemd.ErrNotInstalled) || (r.UnitErr == nil && !r.Unit.Installed()):
		u.State, u.Detail = policy.UnitMissing, fmt.Sprintf("%s is %s", a.opt.Config.Etcd.Unit,
			orText(r.Unit.LoadState, "not installed"))
	case r.UnitErr != nil:
		u.State, u.Detail = policy.UnitUnknown, r.UnitErr.Error()
	default:
		u.State, u.Detail = unitState(r.Unit.State), unitDetail(r.Unit)
	}
	u.NotAtBoot = r.UnitErr == nil && r.Unit.NotAtBoot()
	if r.Unit.Program != a.opt.Config.Etcd.Binary {
		u.Program = r.Unit.Program
	}
	// one that never ran has been in its state since no moment
	u.Ran = r.UnitErr == nil && (r.Unit.State != systemd.Inactive || r.Unit.Since > 0)
	u.State = withJob(u.State, r.Unit.Job)
	u.Since = a.since.of("unit", string(u.State), r.At, r.Number)
}

// withJob gives the state that a unit is about to leave for: a job that is queued is as good as begun.
func withJob(state policy.UnitState, job string) policy.UnitState {
	switch {
	case state == policy.UnitActive && (job == "stop" || job == "restart"):
		return policy.UnitDeactivating
	case (state == policy.UnitInactive || state == policy.UnitFailed) && (job == "start" || job == "restart"):
		return policy.UnitActivating
	}
	return state
}

func orText(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func unitState(s systemd.State) policy.UnitState {
	switch s { //exhaustive:enforce
	case systemd.Inactive:
		return policy.UnitInactive
	case systemd.Activating:
		return policy.UnitActivating
	case systemd.Active:
		return policy.UnitActive
	case systemd.Deactivating:
		return policy.UnitDeactivating
	case systemd.Failed:
		return policy.UnitFailed
	case systemd.Unknown:
	}
	return policy.UnitUnknown
}

func unitDetail(s systemd.Status) string {
	switch {
	case s.Signal != "":
		return fmt.Sprintf("%s, ended by %s", s.Result, s.Signal)
	case s.State == systemd.Failed && s.ExitCode >= 0:
		return fmt.Sprintf("%s, exit code %d", s.Result, s.ExitCode)
	}
	return s.Result
}

// wantedEnvironment is what etcd should be started with, as things are: for a new cluster when
// one is asked for and none answers, otherwise for the present member list.
func (a *Agent) wantedEnvironment(r *round.Round) map[string]string {
	if r.Bootstrap != nil && !r.View.Cluster.Reachable {
		return environment(a.opt.Config, nil, r.Bootstrap.Token)
	}
	return environment(a.opt.Config, r.Membership.Members, "")
}

// observeData looks at the data directory, beside the loop.
func (a *Agent) observeData(ctx context.Context, r *round.Round) {
	every := dataEvery * a.opt.Config.Timing.Interval
	before := a.current.Load()
	if r.View.Unit.State == policy.UnitActive && before != nil && before.View.Data.State == policy.DataMember {
		every *= maxAge // nobody but etcd changes it now
	}
	a.data.Refresh(ctx, a.opt.Now, every, lookTimeout, a.opt.Data.Inspect)
	found, err, ok := a.data.Get(r.At, maxAge*every+lookTimeout)
	d := &r.View.Data
	d.Age = a.data.Age(r.At)
	if ok && found.Free >= 0 {
		d.Free, d.FreeKnown = uint64(found.Free), true
	}
	switch {
	case !ok && err != nil:
		d.Detail = err.Error()
	case !ok:
	case found.Problem != "":
		d.State, d.Detail = policy.DataUnreadable, found.Problem
	case found.Empty:
		d.State = policy.DataEmpty
	case found.MemberID == 0:
		d.State = policy.DataRemains
	default:
		d.State, d.ClusterID, d.MemberID = policy.DataMember, found.ClusterID, found.MemberID
	}
}

// observeVersion finds the version of the local etcd: the running member's own word, otherwise
// the binary's. It is not looked at while a command runs, which may exchange it: the first look is after its end.
func (a *Agent) observeVersion(ctx context.Context, r *round.Round) {
	every := binaryEvery * a.opt.Config.Timing.Interval
	if k := r.View.Asked; k == nil || k.Command.State != policy.HooksStarting &&
		k.Command.State != policy.HooksRunning {
		a.binary.Refresh(ctx, a.opt.Now, every, lookTimeout, a.opt.EtcdVersion)
	}
	if text, _, ok := a.binary.Get(r.At, maxAge*every); ok {
		r.View.Self.Etcd = policy.ParseVersion(text)
	}
}

// observeClock compares the wall clock with the voters', beside the loop. A host that rests does so as seldom as it
// asks etcd, and in turns that do: their moments have drifted apart, so that the hosts of a fleet that were started
// together do not all compare at once. What it has found then still counts when it becomes attentive, until there was
// time to compare again.
func (a *Agent) observeClock(ctx context.Context, r *round.Round) {
	if !r.View.Cluster.Reachable {
		return
	}
	every := max(clockEvery*a.opt.Config.Timing.Interval, time.Second)
	oldest := maxAge * every
	if seldom := max(clockEvery*a.pace.rest(), time.Second); !a.pace.attends {
		every, oldest = seldom, maxAge*seldom
		a.rested = r.At
	} else if a.rested != 0 && r.At-a.rested <= oldest {
		oldest = maxAge * seldom
	}
	if a.pace.attends || r.EtcdAt == r.At {
		a.clock.Refresh(ctx, a.opt.Now, every, lookTimeout, func(ctx context.Context) (time.Duration, error) {
			return a.opt.Etcd.ClockOffset(ctx, a.opt.Wall)
		})
	}
	offset, _, ok := a.clock.Get(r.At, oldest)
	r.View.Clock = policy.Clock{Known: ok, Offset: offset}
}

// observeHealth judges what the probe has measured.
func (a *Agent) observeHealth(r *round.Round) {
	v := &r.View
	_, listed := r.Membership.ByPeerURL(v.Self.PeerURL)
	// In doubt it is one: the disk of a member must not be written to in bursts.
	member := (v.Cluster.Listed && listed) || (!v.Cluster.Listed && v.Data.State != policy.DataEmpty)
	r.Reading, r.Probed = a.opt.Probe.Read(), a.judge.now()
	r.Verdict = a.judge.observe(r, member)
	v.Health = policy.Health{
		State: r.Verdict.State, Qualified: r.Verdict.Qualified, Text: r.Verdict.Text,
		Hangs: r.Reading.InFlightAge > a.opt.Config.Disk.Stall,
	}
}
