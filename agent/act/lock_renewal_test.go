// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/lock"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/contrib/testbed"
	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/systemd"
)

// bench is an actor with a real etcd.
type bench struct {
	*Actor
	t      *testing.T
	member *testbed.Member
	store  *cluster.Client
	probe  *hangingProbe
	now    time.Duration   // advanced by the test only
	counts policy.JoinNote // the JoinNote that the policy decides with the next step
}

// hangingProbe is a probe whose current write has been in flight for a given time.
type hangingProbe struct {
	disk.Prober
	age time.Duration
}

func (p *hangingProbe) InFlight() (time.Duration, string) { return p.age, "fdatasync" }

func newBench(t *testing.T) *bench {
	t.Helper()
	member := testbed.StartCluster(t, 1, testbed.ClusterOptions{Extra: []string{"--unsafe-no-fsync"}}).Members[0]
	store, err := cluster.New(cluster.Options{
		Endpoints: []string{member.Options.ClientURL}, CallTimeout: 10 * time.Second,
		Logger: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	t.Cleanup(func() { _ = store.Close() })
	b := &bench{t: t, member: member, store: store, probe: &hangingProbe{}, now: testNow}
	opt := options(t, hoststate.HostFiles{})
	opt.Etcd, opt.Maintenance, opt.Probe = store, store, b.probe
	opt.Now = func() time.Duration { return b.now }
	opt.Config.Timing = config.Timing{
		CallTimeout: 10 * time.Second, Interval: time.Minute, LockTTL: 2 * time.Minute, RenewGiveUp: time.Minute,
	}
	opt.Config.Disk.Stall = time.Second
	opt.Line = func(revision int64, l record.Line) (string, record.Line) {
		return record.KeysFor("test").HistoryLine(revision, "2", 1), l
	}
	b.Actor = New(opt)
	return b
}

// seen returns a round with the data that steps need from etcd.
func (b *bench) seen() *round.Round {
	b.t.Helper()
	r := &round.Round{At: b.opt.Now(), Wall: b.opt.Wall()}
	found, err := b.store.Read(b.t.Context(), cluster.Span{Start: b.keys.Op()}, cluster.Span{Start: b.keys.Lock()})
	must(b.t, err)
	r.Revision = found.Revision
	for _, pair := range found.Pairs {
		switch pair.Key {
		case b.keys.Lock():
			r.LockAt = pair.CreateRevision
		case b.keys.Op():
			op, err := record.Decode[record.Op](pair.Value)
			must(b.t, err)
			r.Op, r.OpAt = &op, pair.ModRevision
		}
	}
	return r
}

// step takes a step in the current state of etcd, and returns the state after it.
func (b *bench) step(s policy.Step) (round.Completion, *round.Round) {
	b.t.Helper()
	r := b.seen()
	r.Decision.Step, r.Decision.Notes.Join = s, b.counts
	done, ended := b.Act(b.t.Context(), r)
	if !ended || done.On != r {
		b.t.Fatalf("%s: %+v, %t", s.Kind, done, ended)
	}
	return done, b.seen()
}

// must takes a step and fails the test if the step fails.
func (b *bench) must(s policy.Step) (round.Completion, *round.Round) {
	b.t.Helper()
	done, r := b.step(s)
	if done.Err != nil {
		b.t.Fatalf("%s: %v", s.Kind, done.Err)
	}
	return done, r
}

func TestOperationFromTheLockToItsEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	done, r := b.must(policy.Step{Kind: policy.StepTakeLock})
	if d := b.Did(); !done.Unsaid || d.Token == 0 || d.Token != r.LockAt || d.ValidFor(b.opt.Now()) <= 0 {
		t.Errorf("the lock is at %d, and Did returns %+v; %+v", r.LockAt, d, done)
	}
	done, r = b.must(policy.Step{Kind: policy.StepBeginJoin, Target: policy.RoleVoter})
	if done.Unsaid || r.Op.Kind != policy.KindJoin || r.Op.Host != "2" || r.Op.Phase != string(policy.PhaseBegun) ||
		r.Op.Target != "voter" || r.Op.Token != b.Did().Token || r.Op.BootID != "boot-1" {
		t.Errorf("it began as %+v", r.Op)
	}
	_, r = b.must(policy.Step{Kind: policy.StepSetPhase, Phase: policy.PhaseAdded, MemberID: 7})
	if r.Op.Phase != string(policy.PhaseAdded) || r.Op.MemberID != 7 {
		t.Errorf("it is at %+v", r.Op)
	}
	_, r = b.must(policy.Step{Kind: policy.StepRollBack, Outcome: policy.HealthLost, Why: "slow"})
	if r.Op.Phase != string(policy.PhaseRollback) || r.Op.Outcome != "HEALTH_LOST" || r.Op.MemberID != 7 ||
		r.Op.Reason != "HEALTH_LOST: slow" {
		t.Errorf("it is rolled back as %+v", r.Op)
	}
	b.counts = policy.JoinFailed
	done, r = b.must(policy.Step{Kind: policy.StepEndOp, Outcome: policy.HealthLost})
	if r.Op != nil || !done.Unsaid || done.Ended == nil || done.Ended.Outcome != "HEALTH_LOST" {
		t.Errorf("the record is %+v, and the completion %+v", r.Op, done)
	}
	line, err := b.store.ReadLast(t.Context(), b.keys.History(), 10)
	must(t, err)
	if len(line.Pairs) != 1 {
		t.Fatalf("the history has %d lines", len(line.Pairs))
	}
	if l, err := record.Decode[record.Line](line.Pairs[0].Value); err != nil || l.Text != done.Ended.Text {
		t.Errorf("the history says %+v, %v", l, err)
	}
	if b.opt.Files.Backoff("boot-1", b.opt.Now(), time.Hour) == 0 {
		t.Error("the failed join is not recorded")
	}
	if _, r = b.must(policy.Step{Kind: policy.StepReleaseLock}); r.LockAt != 0 || b.Did().Token != 0 {
		t.Errorf("the lock is at %d, and Did returns %+v", r.LockAt, b.Did())
	}
}

func TestStepThatFailsForLackOfSpaceIsMarked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(policy.Step{Kind: policy.StepTakeLock})
	b.must(policy.Step{Kind: policy.StepBeginJoin, Target: policy.RoleVoter})
	b.raiseNoSpace()
	for _, s := range []policy.Step{
		{Kind: policy.StepSetPhase, Phase: policy.PhaseAdded},
		{Kind: policy.StepRollBack, Outcome: policy.JoinTimedOut},
		{Kind: policy.StepEndOp, Outcome: policy.JoinTimedOut},
	} {
		done, _ := b.step(s)
		if f := b.Did().Failed; done.Err == nil || !f.Full || f.Kind != s.Kind || f.Text != done.Err.Error() {
			t.Errorf("%s: %v; Did returns %+v", s.Kind, done.Err, f)
		}
	}
	b.must(policy.Step{Kind: policy.StepReleaseLock}) // an alarm does not prevent the release
	if done, _ := b.step(policy.Step{Kind: policy.StepTakeLock}); !b.Did().Failed.Full {
		t.Errorf("the lock: %v; Did returns %+v", done.Err, b.Did().Failed)
	}
}

func TestLosingTheRaceForTheLockIsNotReported(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := lock.New(b.store, lock.Options{
		Keys: b.keys, Host: "1", Name: "n1", TTL: time.Minute, Now: b.opt.Now, Wall: b.opt.Wall,
	})
	must(t, other.Take(t.Context(), 0))
	done, _ := b.step(policy.Step{Kind: policy.StepTakeLock})
	if !errors.Is(done.Err, lock.ErrTaken) || !done.Unsaid || b.Did().Token != 0 {
		t.Errorf("%+v; Did returns %+v", done, b.Did())
	}
}

func TestLockIsRenewedOnlyWhileNothingHangs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(policy.Step{Kind: policy.StepTakeLock})
	renewed := func() bool {
		before := b.Did().ValidUntil
		b.now += time.Second
		b.Renew(t.Context())
		return b.Did().ValidUntil > before
	}
	if !renewed() {
		t.Error("the lock is not renewed although nothing hangs")
	}
	if b.probe.age = time.Second + 1; renewed() {
		t.Error("the lock is renewed while the disk hangs")
	}
	b.probe.age = 0
	hangs := &task{began: b.opt.Now() - time.Minute - 1}
	if b.running = hangs; renewed() {
		t.Error("the lock is renewed while a step hangs")
	}
	hangs.began = b.now
	if !renewed() {
		t.Error("the lock is not renewed while a step runs")
	}
	b.running = nil
	b.opt.Config.Timing.RenewEvery = time.Minute
	if renewed() {
		t.Error("the lock is renewed too often")
	}
	b.Leave(t.Context())
	if r := b.seen(); r.LockAt != 0 {
		t.Errorf("it is still at %d after its holder has left", r.LockAt)
	}
}

func TestLostLockIsReleased(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if b.Check(t.Context(), 7) {
		t.Error("a lock that is not held was released")
	}
	_, r := b.must(policy.Step{Kind: policy.StepTakeLock})
	if b.Check(t.Context(), r.LockAt) || b.Did().Token == 0 {
		t.Error("a live lock was released")
	}
	for _, seen := range []int64{0, r.LockAt + 1} {
		if b.Did().Token == 0 {
			b.must(policy.Step{Kind: policy.StepTakeLock})
		}
		if !b.Check(t.Context(), seen) || b.Did().Token != 0 || b.Did().ValidFor(b.opt.Now()) != 0 {
			t.Errorf("seen at %d: Did returns %+v", seen, b.Did())
		}
	}
}

func TestStepEndsWithItsBound(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(policy.Step{Kind: policy.StepTakeLock})
	unit := &waitingUnit{}
	b.opt.Unit = unit
	b.opt.Config.Timing.CallTimeout = 10 * time.Millisecond
	r := b.seen()
	r.Request = &hoststate.Request{Request: policy.Request{Work: policy.WorkRestart}, Since: time.Unix(1, 0)}
	r.Decision.Step.Kind = policy.StepRestartUnit
	done, ended := b.Act(t.Context(), r)
	if !ended || !errors.Is(done.Err, context.DeadlineExceeded) {
		t.Errorf("%+v, %t", done, ended)
	}
}

// waitingUnit is a unit whose restart blocks until its context ends.
type waitingUnit struct{ systemd.Unit }

func (*waitingUnit) Restart(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
