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

// The model's claims about voters that are removed for good, in the order in which replacements remove them. The tour
// meets the same changes one at a time; it cannot choose the leader, nor let a call time out and land later.

// The hosts of these stories. C is removed, and D replaces it.
const (
	hostA = iota
	hostB
	hostC
	hostD
	hostE
)

// removalStory is a story about a voter that is removed.
type removalStory struct {
	name   string
	voters int // at the start
	play   func(b *bench) error
}

// removalStories returns all of them.
func removalStories() []removalStory {
	return []removalStory{
		{"a dead voter is removed and a standby replaces it", 3, deadGivesWay},
		{
			"an unhealthy voter is removed after promotion of its replacement and leadership transfer",
			3,
			unhealthyGivesWay,
		},
		{"a leader is removed without a leadership transfer", 3, leaderGoes},
		{"a voter that the quorum needs stays", 3, neededStays},
		{"of five voters two dead ones are removed, and no other", 5, twoDeadGo},
		{"a voter that is needed among the started ones stays", 3, startedStays},
		{"the only voter stays", 1, onlyOneStays},
		{"an unanswered removal is committed once a quorum is back", 3, lateRemovalLands},
		{"a removal known only to the leader is lost with it", 3, lateRemovalIsLost},
	}
}

// operate applies operations one after the other and compares each with the model.
func (b *bench) operate(list ...operation) error {
	for _, o := range list {
		if err := b.try(o); err != nil {
			return err
		}
	}
	return nil
}

func one(k opKind, i int) operation { return operation{kind: k, host: uint8(i)} }

// joinAsLearner makes a host a learner that follows.
func (b *bench) joinAsLearner(i int) error {
	return b.operate(one(opAdd, i), operation{opEnv, uint8(i), joinEnv}, one(opStart, i), one(opUp, i), one(opUp, i))
}

// lead makes a voter the leader.
func (b *bench) lead(i int) error {
	b.story = append(b.story, "     "+hostName(i)+" leads")
	return b.until(b.patience, func(ctx context.Context) error {
		id, err := b.leaderID(ctx)
		if err != nil || id == b.hosts[i].id {
			return err
		}
		for g, h := range b.hosts {
			if h.id == id {
				_, err = b.conn(g).MoveLeader(ctx, b.hosts[i].id)
			}
		}
		return errors.Join(err, errors.New("another one leads"))
	})
}

// leaderID asks any voter for the leader.
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

func deadGivesWay(b *bench) error {
	err := b.joinAsLearner(hostD)
	if err == nil {
		err = b.operate(one(opCrash, hostC), one(opRemove, hostC), one(opPromote, hostD), one(opRemove, hostC))
	}
	if err != nil {
		return err
	}
	return b.comesBack(hostC)
}

// comesBack starts the etcd of a member that was removed while it was down. It answers no one, and exits.
func (b *bench) comesBack(i int) error {
	ctx, stop := context.WithCancel(b.ctx)
	answered := make(chan error, 1)
	go func() { answered <- b.neverReads(ctx, i) }()
	err := b.operate(one(opStart, i), one(opUp, i))
	stop()
	return errors.Join(<-answered, err)
}

// neverReads repeatedly asks a member for a linearizable read, which it must not serve.
func (b *bench) neverReads(ctx context.Context, i int) error {
	m := testbed.Member{Options: testbed.MemberOptions{ClientURL: b.hosts[i].client}}
	conn, err := m.Client()
	if err != nil {
		return err
	}
	defer conn.Close()
	for ctx.Err() == nil {
		once, done := context.WithTimeout(ctx, silence)
		_, err := conn.Get(once, "k")
		<-once.Done()
		done()
		if err == nil {
			return differ(hostName(i)+" was removed and serves no read", "it serves one")
		}
	}
	return nil
}

func unhealthyGivesWay(b *bench) error {
	err := b.joinAsLearner(hostD)
	if err == nil {
		err = errors.Join(b.operate(one(opPromote, hostD)), b.lead(hostC), b.lead(hostA))
	}
	if err != nil {
		return err
	}
	return b.operate(one(opRemove, hostC), one(opRemove, hostC), one(opUp, hostC))
}

func leaderGoes(b *bench) error {
	if err := b.lead(hostC); err != nil {
		return err
	}
	return b.operate(one(opRemove, hostC), one(opUp, hostC))
}

func neededStays(b *bench) error {
	return b.operate(one(opKill, hostC), one(opRemove, hostB), one(opRemove, hostC), one(opRemove, hostC))
}

func twoDeadGo(b *bench) error {
	return b.operate(one(opKill, hostC), one(opKill, hostE), one(opRemove, hostA), one(opRemove, hostC),
		one(opRemove, hostA), one(opRemove, hostE))
}

func onlyOneStays(b *bench) error { return b.operate(one(opRemove, hostA)) }

// startedStays adds two voters that never start, as an operator may: quorumd adds learners.
func startedStays(b *bench) error {
	for _, i := range []int{hostD, hostE} {
		err := b.until(b.patience, func(ctx context.Context) error {
			_, err := b.conn(hostA).MemberAdd(ctx, []string{b.hosts[i].peer})
			return err
		})
		if err != nil {
			return err
		}
		b.w.hosts[i] = host{list: voter}
	}
	return b.operate(one(opRemove, hostC), one(opRemove, hostD), one(opRemove, hostC))
}

// askUnanswered asks A, the leader, to remove C while no other member answers A.
func (b *bench) askUnanswered(paused ...int) error {
	b.must(b.lead(hostA))
	for _, i := range paused {
		b.must(b.hosts[i].member.Pause())
	}
	ctx, cancel := context.WithTimeout(b.ctx, 2*realElection)
	defer cancel()
	b.story = append(b.story, "     A is asked to remove C, and reaches no other member")
	if _, err := b.conn(hostA).MemberRemove(ctx, b.hosts[hostC].id); err == nil {
		return differ("no quorum answers", "one answers")
	}
	return nil
}

func lateRemovalLands(b *bench) error {
	if err := b.operate(one(opKill, hostC)); err != nil {
		return err
	}
	if err := b.askUnanswered(hostB); err != nil {
		return err
	}
	b.must(b.hosts[hostB].member.Resume())
	late := one(opLateRemove, hostC)
	if want := b.claims.refuses(&b.w, late); want != accepted {
		if err := b.goes(hostC); err == nil {
			return differ("C stays: "+strings.Join(want.texts(), ", or "), "it goes")
		}
	}
	if err := b.goes(hostC); err != nil {
		return differ("C is removed late", "%v", err)
	}
	late.do(&b.w)
	if err := b.compare(); err != nil {
		return err
	}
	return b.operate(one(opRemove, hostC))
}

// goes waits until a voter has left the list. Its error names what is there instead.
func (b *bench) goes(i int) error {
	return b.until(b.patience, func(ctx context.Context) error {
		list, err := b.list(ctx, b.voterToAsk(i))
		if err == nil && list[i] != nil {
			err = fmt.Errorf("%s is listed", hostName(i))
		}
		return err
	})
}

func lateRemovalIsLost(b *bench) error {
	if err := b.askUnanswered(hostB, hostC); err != nil {
		return err
	}
	b.must(b.end(hostA, (*testbed.Member).Kill9))
	b.w.hosts[hostA].unit = inactive
	b.must(b.hosts[hostB].member.Resume())
	b.must(b.hosts[hostC].member.Resume())
	if !b.claims.lost {
		one(opLateRemove, hostC).do(&b.w)
	}
	if err := b.compare(); err != nil {
		return err
	}
	return b.operate(one(opStart, hostA), one(opUp, hostA))
}

// tells plays a story, and returns where etcd differs from the model.
func (b *bench) tells(s removalStory) (err error) {
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

// removalLies returns false claims about removed voters, by the story in which each shows.
func removalLies() map[string]lie {
	refuses := func(instead answer, where func(w *world, o operation, honest answer) bool) func(c *claims) {
		return func(c *claims) {
			honest := c.refuses
			c.refuses = func(w *world, o operation) answer {
				a := honest(w, o)
				if where(w, o, a) {
					return instead
				}
				return a
			}
		}
	}
	return map[string]lie{
		"a dead voter is removed and a standby replaces it": {
			"one of three voters that is down stays",
			refuses(unhealthyCluster, func(w *world, o operation, honest answer) bool {
				return o.kind == opRemove && honest == accepted && !w.runs(int(o.host))
			}),
		},
		"an unhealthy voter is removed after promotion of its replacement and leadership transfer": {
			"one of four voters that runs stays",
			refuses(unhealthyCluster, func(w *world, o operation, honest answer) bool {
				return o.kind == opRemove && honest == accepted && w.runs(int(o.host))
			}),
		},
		"a voter that is needed among the started ones stays": {
			"whether members have ever started does not matter",
			refuses(unhealthyCluster, func(_ *world, _ operation, honest answer) bool { return honest == notEnough }),
		},
		"an unanswered removal is committed once a quorum is back": {
			"an unanswered removal is never committed",
			refuses(unhealthyCluster, func(_ *world, o operation, _ answer) bool { return o.kind == opLateRemove }),
		},
		"a removal known only to the leader is lost with it": {
			"what a leader accepted is always committed",
			func(c *claims) { c.lost = false },
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
				b := newBench(t, version, ofTheModel(), s.voters, longPatience)
				t.Cleanup(b.close)
				if err := b.tells(s); err != nil {
					t.Fatal(err)
				}
				t.Logf("%.1f s, %d change calls, answers that the model leaves open: %v",
					time.Since(began).Seconds(), b.calls, b.open)
			})
		}
	}
}

func TestEveryLieAboutRemovalsIsReported(t *testing.T) {
	t.Parallel()
	lies := removalLies()
	for _, s := range removalStories() {
		l, found := lies[s.name]
		if !found {
			continue
		}
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			c := ofTheModel()
			l.tell(&c)
			b := newBench(t, testbed.DefaultVersion, c, s.voters, shortPatience)
			t.Cleanup(b.close)
			var d *difference
			if err := b.tells(s); !errors.As(err, &d) {
				t.Errorf("it is not reported: %v", err)
			}
			t.Log(d)
		})
		delete(lies, s.name)
	}
	if len(lies) > 0 {
		t.Errorf("there are no such stories: %v", lies)
	}
}
