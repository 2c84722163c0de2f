// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build realetcd

package model

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// These tests compare the removal of voters, in the order in which replacements remove them.
// TestRealEtcdBehavesAsTheModelClaims compares the same changes one at a time, but can neither choose the leader nor
// let a call time out and be applied later.

// The hosts of these tests. In most of them C is removed. In some, D replaces it.
const (
	hostA = iota
	hostB
	hostC
	hostD
	hostE
)

// removalStory is a sequence of operations in which a voter is removed.
type removalStory struct {
	name   string
	voters int // at the start
	play   func(b *bench) error
}

func removalStories() []removalStory {
	return []removalStory{
		{"a dead voter is removed and a standby replaces it", 3, replaceDead},
		{
			"an unhealthy voter is removed after promotion of its replacement and leadership transfer", 3,
			replaceUnhealthyVoter,
		},
		{"a leader is removed without a leadership transfer", 3, removeLeader},
		{"a voter that the quorum needs is not removed", 3, removeNeeded},
		{"of five voters, only the two dead ones are removed", 5, removeTwoDead},
		{"a voter is not removed if too few voters have started", 3, removeNeededAmongStarted},
		{"the only voter is not removed", 1, removeOnlyVoter},
		{"an unanswered removal is committed when a quorum is back", 3, commitLateRemoval},
		{"a removal known only to the leader is lost with it", 3, loseLateRemoval},
	}
}

// applyAll applies operations one after another, and compares each with the model.
func (b *bench) applyAll(list ...operation) error {
	for _, o := range list {
		if err := b.apply(o); err != nil {
			return err
		}
	}
	return nil
}

func one(k opKind, i int) operation { return operation{kind: k, host: uint8(i)} }

// joinAsLearner adds a host as a learner, and starts it.
func (b *bench) joinAsLearner(i int) error {
	return b.applyAll(one(opAdd, i), operation{opEnv, uint8(i), joinEnv}, one(opStart, i), one(opUp, i), one(opUp, i))
}

func (b *bench) makeLeader(i int) error {
	b.story = append(b.story, "     "+hostName(i)+" leads")
	return b.retryUntil(b.patience, func(ctx context.Context) error {
		id, err := b.leaderID(ctx)
		if err != nil || id == b.hosts[i].id {
			return err
		}
		for g, h := range b.hosts {
			if h.id == id {
				_, err = b.conn(g).MoveLeader(ctx, b.hosts[i].id)
			}
		}
		return errors.Join(err, errors.New("another member leads"))
	})
}

// leaderID returns the ID of the leader, as reported by any voter.
func (b *bench) leaderID(ctx context.Context) (uint64, error) {
	i := b.voterToAsk(-1)
	if _, err := b.list(ctx, i); err != nil {
		return 0, err
	}
	s, err := b.conn(i).Status(ctx, b.hosts[i].client)
	if err == nil && s.Leader == 0 {
		err = errors.New("there is no leader")
	}
	if err != nil {
		return 0, err
	}
	return s.Leader, nil
}

func replaceDead(b *bench) error {
	err := b.joinAsLearner(hostD)
	if err == nil {
		err = b.applyAll(one(opCrash, hostC), one(opRemove, hostC), one(opPromote, hostD), one(opRemove, hostC))
	}
	if err != nil {
		return err
	}
	return b.startRemoved(hostC)
}

// startRemoved starts the etcd of a member that was removed while it was down. It must serve no read, and exit.
func (b *bench) startRemoved(i int) error {
	ctx, stop := context.WithCancel(b.ctx)
	answered := make(chan error, 1)
	go func() { answered <- b.checkNoReads(ctx, i) }()
	err := b.applyAll(one(opStart, i), one(opUp, i))
	stop()
	return errors.Join(<-answered, err)
}

// checkNoReads repeatedly requests a linearizable read from a member, which must not serve it.
func (b *bench) checkNoReads(ctx context.Context, i int) error {
	m := testbed.Member{Options: testbed.MemberOptions{ClientURL: b.hosts[i].client}}
	conn, err := m.Client()
	if err != nil {
		return err
	}
	defer conn.Close()
	for ctx.Err() == nil {
		once, done := context.WithTimeout(ctx, silentFor)
		_, err := conn.Get(once, "k")
		<-once.Done()
		done()
		if err == nil {
			return differ(hostName(i)+" was removed, so it serves no read", "it serves one")
		}
	}
	return nil
}

func replaceUnhealthyVoter(b *bench) error {
	err := b.joinAsLearner(hostD)
	if err == nil {
		err = errors.Join(b.applyAll(one(opPromote, hostD)), b.makeLeader(hostC), b.makeLeader(hostA))
	}
	if err != nil {
		return err
	}
	return b.applyAll(one(opRemove, hostC), one(opRemove, hostC), one(opUp, hostC))
}

func removeLeader(b *bench) error {
	if err := b.makeLeader(hostC); err != nil {
		return err
	}
	return b.applyAll(one(opRemove, hostC), one(opUp, hostC))
}

func removeNeeded(b *bench) error {
	return b.applyAll(one(opKill, hostC), one(opRemove, hostB), one(opRemove, hostC), one(opRemove, hostC))
}

func removeTwoDead(b *bench) error {
	return b.applyAll(one(opKill, hostC), one(opKill, hostE), one(opRemove, hostA), one(opRemove, hostC),
		one(opRemove, hostA), one(opRemove, hostE))
}

func removeOnlyVoter(b *bench) error { return b.applyAll(one(opRemove, hostA)) }

// removeNeededAmongStarted first adds two voters that never start, as an operator can. quorumd adds only learners.
func removeNeededAmongStarted(b *bench) error {
	for _, i := range []int{hostD, hostE} {
		err := b.retryUntil(b.patience, func(ctx context.Context) error {
			_, err := b.conn(hostA).MemberAdd(ctx, []string{b.hosts[i].peer})
			return err
		})
		if err != nil {
			return err
		}
		b.w.hosts[i] = host{list: voter}
	}
	return b.applyAll(one(opRemove, hostC), one(opRemove, hostD), one(opRemove, hostC))
}

// requestUnanswered sends A, the leader, a request to remove C while no other member answers A.
func (b *bench) requestUnanswered(paused ...int) error {
	b.must(b.makeLeader(hostA))
	for _, i := range paused {
		b.must(b.hosts[i].member.Pause())
	}
	ctx, cancel := context.WithTimeout(b.ctx, 2*realElection)
	defer cancel()
	b.story = append(b.story, "     A receives the removal of C, and reaches no other member")
	if _, err := b.conn(hostA).MemberRemove(ctx, b.hosts[hostC].id); err == nil {
		return differ("a removal without a quorum is not answered", "it succeeded")
	}
	return nil
}

func commitLateRemoval(b *bench) error {
	if err := b.applyAll(one(opKill, hostC)); err != nil {
		return err
	}
	if err := b.requestUnanswered(hostB); err != nil {
		return err
	}
	b.must(b.hosts[hostB].member.Resume())
	late := one(opLateRemove, hostC)
	if want := b.claims.refuses(&b.w, late); want != accepted {
		if err := b.waitRemoved(hostC); err == nil {
			return differ("C is not removed: "+strings.Join(want.texts(), ", or "), "it is removed")
		}
	}
	if err := b.waitRemoved(hostC); err != nil {
		return differ("C is removed late", "%v", err)
	}
	late.do(&b.w)
	if err := b.compare(); err != nil {
		return err
	}
	return b.applyAll(one(opRemove, hostC))
}

// waitRemoved waits until a voter is no longer listed.
func (b *bench) waitRemoved(i int) error {
	return b.retryUntil(b.patience, func(ctx context.Context) error {
		list, err := b.list(ctx, b.voterToAsk(i))
		if err == nil && list[i] != nil {
			err = fmt.Errorf("%s is listed", hostName(i))
		}
		return err
	})
}

func loseLateRemoval(b *bench) error {
	if err := b.requestUnanswered(hostB, hostC); err != nil {
		return err
	}
	b.must(b.stopEtcd(hostA, (*testbed.Member).Kill9))
	b.w.hosts[hostA].unit = inactive
	b.must(b.hosts[hostB].member.Resume())
	b.must(b.hosts[hostC].member.Resume())
	if !b.claims.lostWithLeader {
		one(opLateRemove, hostC).do(&b.w)
	}
	if err := b.compare(); err != nil {
		return err
	}
	return b.applyAll(one(opStart, hostA), one(opUp, hostA))
}

// playStory plays a story, and returns an error if etcd differs from the model.
func (b *bench) playStory(s removalStory) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s\n%w%s%s", strings.Join(b.story, "\n"), err, logs, b.processes())
		}
	}()
	if err := b.compare(); err != nil {
		return err
	}
	return s.play(b)
}

// falseRemovalClaims returns false claims about removals, by the story that refutes them.
func falseRemovalClaims() map[string]falseClaim {
	refuses := func(instead answer, where func(w *world, o operation, intact answer) bool) func(c *claims) {
		return func(c *claims) {
			intact := c.refuses
			c.refuses = func(w *world, o operation) answer {
				a := intact(w, o)
				if where(w, o, a) {
					return instead
				}
				return a
			}
		}
	}
	return map[string]falseClaim{
		"a dead voter is removed and a standby replaces it": {
			"one of three voters that is down is not removed",
			refuses(unhealthyCluster, func(w *world, o operation, intact answer) bool {
				return o.kind == opRemove && intact == accepted && !w.runs(int(o.host))
			}),
		},
		"an unhealthy voter is removed after promotion of its replacement and leadership transfer": {
			"one of four voters that runs is not removed",
			refuses(unhealthyCluster, func(w *world, o operation, intact answer) bool {
				return o.kind == opRemove && intact == accepted && w.runs(int(o.host))
			}),
		},
		"a voter is not removed if too few voters have started": {
			"members that have never started count",
			refuses(unhealthyCluster, func(_ *world, _ operation, intact answer) bool { return intact == notEnough }),
		},
		"an unanswered removal is committed when a quorum is back": {
			"an unanswered removal is never committed",
			refuses(unhealthyCluster, func(_ *world, o operation, _ answer) bool { return o.kind == opLateRemove }),
		},
		"a removal known only to the leader is lost with it": {
			"a change that a leader accepted is always committed",
			func(c *claims) { c.lostWithLeader = false },
		},
	}
}

func TestRealEtcdRemovesVotersAsTheModelClaims(t *testing.T) {
	t.Parallel()
	for _, version := range versions() {
		for _, s := range removalStories() {
			t.Run(version+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				began := time.Now()
				b := newBench(t, version, modelClaims(), s.voters, longPatience)
				t.Cleanup(b.close)
				if err := b.playStory(s); err != nil {
					t.Fatal(err)
				}
				t.Logf("%.1f s, %d change calls, answers that the model leaves open: %v",
					time.Since(began).Seconds(), b.calls, b.openAnswers)
			})
		}
	}
}

func TestEveryFalseClaimAboutRemovalsIsReported(t *testing.T) {
	t.Parallel()
	claims := falseRemovalClaims()
	for _, s := range removalStories() {
		l, found := claims[s.name]
		if !found {
			continue
		}
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			c := modelClaims()
			l.apply(&c)
			b := newBench(t, testbed.DefaultVersion, c, s.voters, shortPatience)
			t.Cleanup(b.close)
			var d *difference
			if err := b.playStory(s); !errors.As(err, &d) {
				t.Errorf("etcd does not refute it: %v", err)
			}
			t.Log(d)
		})
		delete(claims, s.name)
	}
	if len(claims) > 0 {
		t.Errorf("no story has these names: %v", claims)
	}
}
