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

// A voter is paused while a learner is removed and a different one is added. Then all voters are killed, and only the
// voter that was paused restarts. It answers the joining member with the earlier list.
func TestRealEtcdExitsIfItReceivesAnOutdatedListWhenItJoins(t *testing.T) {
	t.Parallel()
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c := modelClaims()
			c.mayGetOldList = func(*world, int) bool { return true }
			b := newBench(t, version, c, 3, longPatience)
			t.Cleanup(b.close)
			b.replaceWhilePaused(0, 4, 3)
			for i := range 3 {
				b.must(b.stopEtcd(i, (*testbed.Member).Kill9))
			}
			b.spawn(0)
			b.must(b.retryUntil(b.patience, func(ctx context.Context) error {
				return getMembers(ctx, b.hosts[0].peer)
			}))
			b.environment(3, joinEnv)
			b.spawn(3)
			how, err := b.waitJoined(3, "D receives an outdated list")
			if b.must(err); how != 1 {
				t.Error("D has joined")
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

// getMembers requests the member list as a joining etcd does, which needs no quorum.
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

// replaceWhilePaused adds a learner, and replaces it with a different one while a voter is paused.
func (b *bench) replaceWhilePaused(sleeper, before, after int) {
	b.t.Helper()
	for i := range 3 {
		b.must(b.waitReady(i, "it is a ready voter"))
	}
	add := func(i int) {
		b.must(b.retryUntil(b.patience, func(ctx context.Context) error {
			_, err := b.conn(1).MemberAddAsLearner(ctx, []string{b.hosts[i].peer})
			return err
		}))
		b.w.hosts[i].list = learner
	}
	add(before)
	b.must(b.retryUntil(b.patience, func(ctx context.Context) error { // the leader must not be paused
		if _, err := b.list(ctx, sleeper); err != nil { // a linearizable read: the voter has applied the addition
			return err
		}
		s, err := b.conn(sleeper).Status(ctx, b.hosts[sleeper].client)
		if err == nil && s.Leader == b.hosts[sleeper].id {
			_, err = b.conn(sleeper).MoveLeader(ctx, b.hosts[1].id)
			err = errors.Join(err, errors.New("the voter to pause leads"))
		}
		return err
	}))
	b.must(b.hosts[sleeper].member.Pause())
	b.must(b.retryUntil(b.patience, func(ctx context.Context) error {
		_, err := b.conn(1).MemberRemove(ctx, b.hosts[before].id)
		return err
	}))
	b.w.hosts[before].list = unlisted
	add(after)
}
