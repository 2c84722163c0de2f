// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build realetcd

package model

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// A voter is paused while a learner is removed and another one is added. It is then killed and restarts with the
// earlier list, and it is the only member that answers the joining one.
func TestRealEtcdExitsIfItReceivesAnOutdatedListAsItJoins(t *testing.T) {
	t.Parallel()
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c := ofTheModel()
			c.old = func(*world, int) bool { return true }
			b := newBench(t, version, c, 3, longPatience)
			t.Cleanup(b.close)
			b.replaceUnseen(0, 4, 3)
			for i := range 3 {
				b.must(b.end(i, (*testbed.Member).Kill9))
			}
			b.spawn(0)
			b.must(b.until(b.patience, func(ctx context.Context) error { return getMembers(ctx, b.hosts[0].peer) }))
			b.environment(3, joinEnv)
			b.spawn(3)
			how, err := b.joins(3, "D receives an outdated list")
			if b.must(err); how != 1 {
				t.Error("it has joined")
			}
		})
	}
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// getMembers reads a member's list as a joining etcd does. That needs no quorum.
func getMembers(ctx context.Context, peer string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, peer+"/members", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// replaceUnseen adds a learner and replaces it by another one while a voter is paused.
func (b *bench) replaceUnseen(sleeper, before, after int) {
	b.t.Helper()
	for i := range 3 {
		b.must(b.ready(i, "it is a voter"))
	}
	add := func(i int) {
		b.must(b.until(b.patience, func(ctx context.Context) error {
			_, err := b.conn(1).MemberAddAsLearner(ctx, []string{b.hosts[i].peer})
			return err
		}))
		b.w.hosts[i].list = learner
	}
	add(before)
	b.must(b.until(b.patience, func(ctx context.Context) error { // a paused leader would leave no member to ask
		if _, err := b.list(ctx, sleeper); err != nil { // linearizably, so that it has the learner
			return err
		}
		s, err := b.conn(sleeper).Status(ctx, b.hosts[sleeper].client)
		if err == nil && s.Leader == b.hosts[sleeper].id {
			_, err = b.conn(sleeper).MoveLeader(ctx, b.hosts[1].id)
			err = errors.Join(err, errors.New("it leads"))
		}
		return err
	}))
	b.must(b.hosts[sleeper].member.Pause())
	b.must(b.until(b.patience, func(ctx context.Context) error {
		_, err := b.conn(1).MemberRemove(ctx, b.hosts[before].id)
		return err
	}))
	b.w.hosts[before].list = unlisted
	add(after)
}
