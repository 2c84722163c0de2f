// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/poll"
	"github.com/quorumd/quorumd/agent/round"
)

// found gives what a look beside the loop has found, unless that is older than oldest.
func found[T any](l *poll.Look[T], now, oldest time.Duration) round.HostState[T] {
	value, err, ok := l.Get(now, oldest)
	return round.HostState[T]{Value: value, Err: err, OK: ok, Age: l.Age(now)}
}

// askUnit asks for the state of the local etcd unit.
func (o *Observer) askUnit(ctx context.Context, r *round.Round) {
	ctx, cancel := context.WithTimeout(ctx, o.opt.Config.Timing.CallTimeout)
	defer cancel()
	r.Unit, r.UnitErr = o.opt.Unit.Status(ctx)
}

// lookAtData looks at the data directory, beside the loop.
func (o *Observer) lookAtData(ctx context.Context, r *round.Round) {
	every := dataEvery * o.opt.Config.Timing.Interval
	if o.serves(r) {
		every *= maxAge // nobody but etcd changes it now
		if calm(r) {
			every *= calmShare
		}
	}
	o.data.Refresh(ctx, o.opt.Now, every, lookTimeout, o.opt.Data.Inspect)
	r.Data = found(&o.data, r.At, maxAge*every+lookTimeout)
}

// lookAtSpool looks, beside the loop, at the directory in which a restore is tested.
func (o *Observer) lookAtSpool(ctx context.Context, r *round.Round) {
	if o.opt.Spool == nil {
		return
	}
	look := func(context.Context) (policy.Spool, error) { return o.opt.Spool() }
	o.spool.Refresh(ctx, o.opt.Now, sensorsEvery, lookTimeout, look)
	r.Spool = found(&o.spool, r.At, maxAge*sensorsEvery)
	r.Spool.Value.Testing = o.opt.Testing != nil && o.opt.Testing()
}

// calmShare is how much more seldom a child process is started for a look, on a host whose etcd serves and is left
// alone: a child costs as much as ten rounds of the loop, and one that starts etcd's program for its version as twenty.
const calmShare = 12

// calm tells whether nothing is asked of this host, and no operation is in flight.
func calm(r *round.Round) bool {
	return r.Request == nil && r.Op == nil && r.Bootstrap == nil && r.Removal == nil && r.Recovery == nil
}

// serves tells whether etcd runs here, on the data of a member.
func (o *Observer) serves(r *round.Round) bool {
	return stateOfUnit(r) == policy.UnitActive && o.before != nil && stateOfData(o.before.Data) == policy.DataMember
}

// askVersion finds the version of the local etcd: the running member's own word, otherwise
// the binary's. It is not looked at while a command runs, which may exchange it: the first look is after its end.
func (o *Observer) askVersion(ctx context.Context, r *round.Round) {
	every := binaryEvery * o.opt.Config.Timing.Interval
	if o.before != nil && stateOfUnit(o.before) == policy.UnitActive && stateOfUnit(r) != policy.UnitActive {
		o.binary.Forget() // it may have been exchanged since etcd was started, and is what would be started now
	}
	if o.serves(r) && calm(r) { // it is a start, or a restart, that wants to know
		every *= calmShare
	}
	if s := o.view.command(r).State; s != policy.HooksStarting && s != policy.HooksRunning {
		o.binary.Refresh(ctx, o.opt.Now, every, lookTimeout, o.opt.EtcdVersion)
	}
	r.Binary = found(&o.binary, r.At, maxAge*every)
}

// askClock compares the wall clock with the voters', beside the loop. A host that rests does so as seldom as it
// asks etcd, and in rounds that do: their moments have drifted apart, so that the hosts of a fleet that were started
// together do not all compare at once. What it has found then still counts when it becomes attentive, until there was
// time to compare again.
func (o *Observer) askClock(ctx context.Context, r *round.Round) {
	if !r.Reachable {
		return
	}
	every := max(clockEvery*o.opt.Config.Timing.Interval, time.Second)
	oldest := maxAge * every
	if seldom := max(clockEvery*o.pace.rest(), time.Second); !o.pace.attends {
		every, oldest = seldom, maxAge*seldom
		o.rested = r.At
	} else if o.rested != 0 && r.At-o.rested <= oldest {
		oldest = maxAge * seldom
	}
	if o.pace.attends || r.EtcdAt == r.At {
		o.clock.Refresh(ctx, o.opt.Now, every, lookTimeout, func(ctx context.Context) (time.Duration, error) {
			return o.opt.Etcd.ClockOffset(ctx, o.opt.Wall)
		})
	}
	r.Clock = found(&o.clock, r.At, oldest)
}

// judgeHealth judges what the probe and all other sensors have measured, and reads which findings are muted.
func (o *Observer) judgeHealth(ctx context.Context, r *round.Round) {
	own, listed := r.Membership.ByPeerURL(o.opt.Config.Etcd.PeerURL)
	lost := listed && own.ID == r.Noted.Lost
	member := policy.HoldsMember(r.Listed, listed, lost, stateOfData(r.Data))
	r.Reading, r.Probed = o.opt.Probe.Read(), o.judge.now()
	r.Verdict = o.judge.observe(ctx, r, member)
	r.Mutes, r.MutesOver = o.opt.Local.Mutes(r.Verdict.Findings, r.Wall)
}
