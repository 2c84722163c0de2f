// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/quorumd/quorumd/agent/datadir"
	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/systemd"
)

// unit builds the view of the local etcd unit.
func (b *Builder) unit(r *round.Round) policy.Unit {
	u := policy.Unit{
		State: stateOfUnit(r), SinceStart: r.Did.Started.Age(r.At),
		NotAtBoot: r.UnitErr == nil && r.Unit.NotAtBoot(),
		// systemd reports no state change time for a unit that never ran
		Ran: r.UnitErr == nil && (r.Unit.State != systemd.Inactive || r.Unit.Since > 0),
	}
	switch {
	case u.State == policy.UnitMissing:
		u.Detail = fmt.Sprintf("%s is %s", b.config.Etcd.Unit, cmp.Or(r.Unit.LoadState, "not installed"))
	case r.UnitErr != nil:
		u.Detail = r.UnitErr.Error()
	default:
		u.Detail = unitDetail(r.Unit)
	}
	if r.Unit.Program != b.config.Etcd.Binary {
		u.Program = r.Unit.Program
	}
	u.Since = b.since.Of("unit", string(u.State), r.At, r.Number)
	return u
}

// stateOfUnit returns the state of the local etcd unit, or the state that it is about to enter.
func stateOfUnit(r *round.Round) policy.UnitState {
	switch {
	case errors.Is(r.UnitErr, systemd.ErrNotInstalled) || (r.UnitErr == nil && !r.Unit.Installed()):
		return withJob(policy.UnitMissing, r.Unit.Job)
	case r.UnitErr != nil:
		return withJob(policy.UnitUnknown, r.Unit.Job)
	}
	return withJob(unitState(r.Unit.State), r.Unit.Job)
}

// withJob returns the state that a unit is about to enter: a queued job counts as begun.
func withJob(state policy.UnitState, job string) policy.UnitState {
	switch {
	case state == policy.UnitActive && (job == "stop" || job == "restart"):
		return policy.UnitDeactivating
	case (state == policy.UnitInactive || state == policy.UnitFailed) && (job == "start" || job == "restart"):
		return policy.UnitActivating
	}
	return state
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

// dataOf builds the view of the data directory.
func dataOf(r *round.Round) policy.Data {
	f, found := r.Data, r.Data.Value
	d := policy.Data{State: stateOfData(f), Age: f.Age}
	if f.OK && found.Free >= 0 {
		d.Free, d.FreeKnown = uint64(found.Free), true
	}
	if f.OK {
		d.Mount = found.Mount
	}
	switch {
	case !f.OK && f.Err != nil:
		d.Detail = f.Err.Error()
	case d.State == policy.DataUnreadable:
		d.Detail = found.Problem
	case d.State == policy.DataMember:
		d.ClusterID, d.MemberID = found.ClusterID, found.MemberID
	}
	return d
}

func stateOfData(f round.HostState[datadir.Contents]) policy.DataState {
	switch {
	case !f.OK:
		return policy.DataUnknown
	case f.Value.Problem != "":
		return policy.DataUnreadable
	case f.Value.Empty:
		return policy.DataEmpty
	case f.Value.MemberID == 0:
		return policy.DataRemains
	}
	return policy.DataMember
}

// health builds the view of the health state.
func (b *Builder) health(r *round.Round) policy.Health {
	return policy.Health{
		State: r.Assessment.State, For: r.Probed - r.Assessment.Since, Qualified: r.Assessment.Qualified,
		Text:         r.Assessment.Text,
		Hangs:        r.Reading.InFlightAge > b.config.Disk.Stall,
		Ungated:      health.Everything.Without(r.Assessment.Gates),
		SlowWrites:   r.Assessment.OnlySlowWrites(health.Leadership),
		FastAgain:    !r.Assessment.SlowNow,
		AnswersAgain: r.Assessment.OnlyStalledRequests(health.Leadership) && r.Assessment.Answers,
		Habitual:     r.Assessment.Habitual,
		Urgent:       r.Assessment.Urgent,
		AsUsual:      r.Assessment.AsUsual,
		Writes:       r.Assessment.Writes.Least,
		Figures: policy.WriteFigures{
			P50: r.Assessment.Writes.P50, P90: r.Assessment.Writes.LeastP90, Tails: r.Assessment.Writes.LeastTails,
		},
	}
}

// asked builds the view of this host's request.
func (b *Builder) asked(r *round.Round) *policy.Asked {
	asked := r.Request
	if asked == nil {
		return nil
	}
	v := asked.At(b.bootID).Asked()
	v.Rollout = asked.Rollout
	v.Overdue, v.RebootFor = round.Overdue(asked.Until(), r.Wall), r.Did.Rebooted.Age(r.At)
	v.Command = b.command(r)
	v.Before, v.After = b.hooks(r, r.Programs.Before, hooks.Before), b.hooks(r, r.Programs.After, hooks.After)
	v.OverFor = b.since.truth(carried+"asked/over", v.Over, r.At, r.Number)
	v.WaitedFor = b.since.Of("asked/"+asked.Since.String(), "", r.At, r.Number)
	return &v
}

const (
	// healthyPeriod is the name, in since, of the healthy period of an ejected host.
	healthyPeriod = carried + "healthy"
	// healthyPeriodGap is the number of intervals without an answer from etcd after which the healthy period ends. A
	// host in a large fleet reads etcd once in 30 intervals, and may miss an answer.
	healthyPeriodGap = 90
)

// ejections builds the view of this host's ejections. The healthy period begins when this agent has read that the host
// was ejected and finds it healthy, so it does not depend on comparing the clocks of two hosts. An unreadable record
// delays no host, because no voter is replaced while the record is unreadable. A healthy period recorded by the
// previous agent continues if it was recorded recently enough.
func (b *Builder) ejections(v *policy.View, r *round.Round) policy.Ejections {
	times, last := r.Repairs.Ejections(b.config.Host.Name, b.config.Etcd.PeerURL, r.Wall)
	if times == 0 {
		return policy.Ejections{}
	}
	out := policy.Ejections{Times: times, Ago: max(0, r.Wall.Sub(last.Time)), Member: uint64(last.Member)}
	noted := r.Noted.HealthyPeriod
	if noted != (hoststate.HealthyPeriod{}) && uint64(noted.Member) == out.Member {
		out.RecordedFor, out.RecordedAgo = max(1, r.At-noted.Began), r.At-noted.Seen
	}
	if v.Health.Known() {
		first := !b.judged
		b.judged = true
		if first && out.RecordedFor > 0 && out.RecordedAgo <= healthyPeriodGap*b.config.Timing.Interval {
			b.since.begin(healthyPeriod, last.Member.String(), noted.Began)
		}
	}
	if v.Health.Healthy() { // another ejection restarts the period
		out.HealthyFor = b.since.Of(healthyPeriod, last.Member.String(), r.At, r.Number)
	}
	return out
}

// removal builds the view of the removal that was requested on this host.
func (b *Builder) removal(r *round.Round) *policy.Removal {
	if r.Removal == nil {
		return nil
	}
	out := r.Removal.At(r.Wall)
	return &out
}

// transfer builds the view of the leadership transfer that was requested on this host.
func (b *Builder) transfer(r *round.Round) *policy.TransferRequest {
	if r.Transfer == nil {
		return nil
	}
	out := r.Transfer.At(r.At)
	return &out
}

// leadershipTransfers builds the view of this host's leadership. Durations that this process cannot know start with its
// first round. A round without an answer from etcd, for example because of a slow leader, does not change which member
// counts as leading.
func (b *Builder) leadershipTransfers(v *policy.View, r *round.Round) policy.LeadershipTransfers {
	leads := r.Led != nil || !r.Reachable && b.since.holds("leads")
	for _, m := range v.Cluster.Members {
		leads = leads || m.Leader && m.PeerURL == v.Self.PeerURL
	}
	return policy.LeadershipTransfers{
		LeadsFor: b.since.truth("leads", leads, r.At, r.Number),
		UnfitFor: b.since.truth("keeps from leading", policy.UnfitNow(v.Health), r.At, r.Number),
		LastFor:  min(r.Did.SteppedDown.Age(r.At), b.since.Of("looks", "", r.At, r.Number)),
		InRow:    r.Did.SteppedDownInRow,
	}
}
