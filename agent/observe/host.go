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

// found returns the last result of a background read, unless it is older than oldest.
func found[T any](l *poll.Poller[T], now, oldest time.Duration) round.HostState[T] {
	value, err, ok := l.Get(now, oldest)
	return round.HostState[T]{Value: value, Err: err, OK: ok, Age: l.Age(now)}
}

// askUnit reads the state of the local etcd unit.
func (o *Observer) askUnit(ctx context.Context, r *round.Round) {
	ctx, cancel := context.WithTimeout(ctx, o.opt.Config.Timing.CallTimeout)
	defer cancel()
	r.Unit, r.UnitErr = o.opt.Unit.Status(ctx)
}

// lookAtData reads the data directory in the background.
func (o *Observer) lookAtData(ctx context.Context, r *round.Round) {
	every := dataEvery * o.opt.Config.Timing.Interval
	if o.serves(r) {
		every *= maxAge // while etcd runs, only etcd changes the directory
		if calm(r) {
			every *= calmShare
		}
	}
	o.data.Refresh(ctx, o.opt.Now, every, lookTimeout, o.opt.InspectData)
	r.Data = found(&o.data, r.At, maxAge*every+lookTimeout)
}

// spoolEvery is the interval between two reads of the directory for restore tests.
const spoolEvery = 10 * time.Second

// lookAtSpool reads the directory for restore tests in the background.
func (o *Observer) lookAtSpool(ctx context.Context, r *round.Round) {
	if o.opt.Spool == nil {
		return
	}
	look := func(context.Context) (policy.Spool, error) { return o.opt.Spool() }
	o.spool.Refresh(ctx, o.opt.Now, spoolEvery, lookTimeout, look)
	r.Spool = found(&o.spool, r.At, maxAge*spoolEvery)
	r.Spool.Value.Testing = o.opt.Testing != nil && o.opt.Testing()
}

// calmShare is the factor by which the interval of reads that start a child process grows while etcd serves here, no
// operation is in flight, and this host has no pending request. A child process costs as much as ten rounds of the
// loop, or as twenty if it runs the etcd binary to read its version.
const calmShare = 12

// calm reports whether this host has no pending request or recovery plan, and the cluster has no operation in flight.
func calm(r *round.Round) bool {
	return r.Request == nil && r.Op == nil && r.Bootstrap == nil && r.Removal == nil && r.Transfer == nil &&
		r.Recovery == nil
}

// serves reports whether etcd runs on this host with the data of a member.
func (o *Observer) serves(r *round.Round) bool {
	return stateOfUnit(r) == policy.UnitActive && o.before != nil && stateOfData(o.before.Data) == policy.DataMember
}

// askVersion reads the version of the local etcd binary in the background. It reads nothing while an operator's command
// runs, because the command may replace the binary. It reads again when the command has ended.
func (o *Observer) askVersion(ctx context.Context, r *round.Round) {
	every := binaryEvery * o.opt.Config.Timing.Interval
	if o.before != nil && stateOfUnit(o.before) == policy.UnitActive && stateOfUnit(r) != policy.UnitActive {
		o.binary.Forget() // the binary, which the next start would use, may have been replaced since etcd was started
	}
	if o.serves(r) && calm(r) { // only a start or a restart needs the version
		every *= calmShare
	}
	if s := o.view.command(r).State; s != policy.HooksStarting && s != policy.HooksRunning {
		o.binary.Refresh(ctx, o.opt.Now, every, lookTimeout, o.opt.EtcdVersion)
	}
	r.Binary = found(&o.binary, r.At, maxAge*every)
}

// learnerLimit holds the maximum number of learners that the running etcd process allows, and the maximum after a
// restart.
type learnerLimit struct {
	pid, limit int
	next       round.NextLimit
}

// askMaxLearners reads, in the background, the maximum number of learners that the running etcd allows. A process keeps
// its limit, so the answer is valid as long as that process runs.
func (o *Observer) askMaxLearners(ctx context.Context, r *round.Round) {
	if o.opt.MaxLearners == nil || r.UnitErr != nil || stateOfUnit(r) != policy.UnitActive {
		o.limit.Forget()
		return
	}
	pid, every := r.Unit.PID, binaryEvery*o.opt.Config.Timing.Interval
	if last, _, known := o.limit.Get(o.opt.Now(), maxAge*every); known && last.pid != pid {
		o.limit.Forget()
	}
	o.limit.Refresh(ctx, o.opt.Now, every, lookTimeout, func(context.Context) (learnerLimit, error) {
		found := learnerLimit{pid: pid}
		var err, nextErr error
		if o.opt.NextMaxLearners != nil {
			found.next.Limit, found.next.From, nextErr = o.opt.NextMaxLearners(pid)
		}
		found.limit, err = o.opt.MaxLearners(pid)
		if err != nil && nextErr == nil && found.next.Limit > 0 {
			err = nil // the limit of the running process is unknown (0), and the limit after a restart is known
		}
		return found, err
	})
	if last, _, known := o.limit.Get(o.opt.Now(), maxAge*every); known && last.pid == pid {
		r.MaxLearners, r.NextLimit = last.limit, last.next
	}
}

// nextEvery is the interval between two calls that check etcd.nextBinary, and nextTimeout bounds one of them. A check
// runs the binary at least once per setting of etcd. While nothing has changed, Options.NextEtcd repeats one only every
// few minutes.
const (
	nextEvery   = 10 * time.Second
	nextTimeout = time.Minute
)

// askNext checks, in the background, whether etcd.nextBinary can replace the running etcd.
func (o *Observer) askNext(ctx context.Context, r *round.Round) {
	switch {
	case o.opt.NextEtcd == nil:
		return
	case r.UnitErr != nil || stateOfUnit(r) != policy.UnitActive:
		o.next.Forget() // etcd may be upgraded before the check ends
		r.NextEtcd.Problem = "cannot be checked unless etcd runs and the state of its unit is known → " +
			"start etcd on that host"
		return
	}
	pid := r.Unit.PID
	o.next.Refresh(ctx, o.opt.Now, nextEvery, nextTimeout, func(ctx context.Context) (policy.NextEtcd, error) {
		return o.opt.NextEtcd(ctx, pid)
	})
	switch value, err, ok := o.next.Get(o.opt.Now(), maxAge*nextEvery+nextTimeout); {
	case ok && err == nil:
		r.NextEtcd = value
	case err != nil:
		r.NextEtcd.Problem = "cannot be checked: " + err.Error()
	default:
		r.NextEtcd.Problem = "has not been checked yet → try again in a minute"
	}
}

// askClock compares the wall clock with those of the voters, in the background. A resting host (see pace) compares only
// in the rounds in which it reads from etcd. Jitter spreads these rounds, so hosts that were started together do not
// all compare at once. When a host becomes attentive, its last result stays valid until it has had time to compare
// again.
func (o *Observer) askClock(ctx context.Context, r *round.Round) {
	if !r.Reachable {
		return
	}
	every := max(clockEvery*o.opt.Config.Timing.Interval, time.Second)
	oldest := maxAge * every
	if rare := max(clockEvery*o.pace.rest(), time.Second); !o.pace.attends {
		every, oldest = rare, maxAge*rare
		o.rested = r.At
	} else if o.rested != 0 && r.At-o.rested <= oldest {
		oldest = maxAge * rare
	}
	if o.pace.attends || r.EtcdAt == r.At {
		o.clock.Refresh(ctx, o.opt.Now, every, lookTimeout, func(ctx context.Context) (time.Duration, error) {
			return o.opt.Etcd.ClockOffset(ctx, o.opt.Wall)
		})
	}
	r.Clock = found(&o.clock, r.At, oldest)
}

// judgeHealth evaluates the measurements of the disk probe and of all other sensors, and reads which findings are
// muted.
func (o *Observer) judgeHealth(ctx context.Context, r *round.Round) {
	own, listed := r.OwnMember(r.Membership, o.opt.Config.Etcd.PeerURL)
	lost := listed && own.ID == r.Noted.Lost
	member := policy.HoldsMember(r.Listed, listed, lost, stateOfData(r.Data))
	r.Reading, r.Probed = o.opt.Probe.Read(), o.judge.now()
	r.Assessment = o.judge.observe(ctx, r, member)
	r.Mutes, r.MutesOver = o.opt.Local.Mutes(r.Assessment.Findings, r.Wall)
}
