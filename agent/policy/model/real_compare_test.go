// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build realetcd

package model

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// silentFor is how long an answer that must not arrive is awaited. It is longer than an election.
const silentFor = 2 * realElection

// compare compares every member with the claims of the model about the current state.
func (b *bench) compare() error {
	if !b.claims.quorum(&b.w) {
		return b.compareSilence()
	}
	if err := b.compareVoters(); err != nil {
		return err
	}
	return b.compareLearners()
}

// compareVoters checks that every voter that serves in the model serves linearizable reads, and that its leader and its
// member list match the world.
func (b *bench) compareVoters() error {
	for i := range b.w.n {
		if b.w.hosts[i].list != voter || !b.claims.serves(&b.w, i) {
			continue
		}
		claim := hostName(i) +
			" serves linearizable reads, the members agree on a running voter as leader, and the list matches the " +
			"world"
		err := b.retryUntil(b.patience, func(ctx context.Context) error {
			list, err := b.list(ctx, i)
			if err != nil {
				return fmt.Errorf("%s serves no linearizable read: %w", hostName(i), err)
			}
			s, err := b.conn(i).Status(ctx, b.hosts[i].client)
			if err != nil {
				return err
			}
			return errors.Join(b.checkLeader(s.Leader), b.checkList(list))
		})
		if err != nil {
			return differ(claim, "%v", err)
		}
	}
	return nil
}

// checkLeader returns an error unless a running voter has that ID.
func (b *bench) checkLeader(id uint64) error {
	for i, h := range b.hosts {
		if h.id == id && id != 0 && b.w.hosts[i].list == voter && b.w.runs(i) {
			return nil
		}
		if h.id == id && id != 0 {
			return fmt.Errorf("the leader is %s", hostName(i))
		}
	}
	return fmt.Errorf("the leader is %x", id)
}

// checkList returns an error if a member list differs from the world.
func (b *bench) checkList(list map[int]*member) error {
	for i := range b.w.n {
		h, got := &b.w.hosts[i], list[i]
		switch {
		case got.listed() != h.list:
			return fmt.Errorf("%s is listed: %t, as a learner: %t", hostName(i), got != nil, got.listed() == learner)
		case got == nil:
		case h.named != 0 && !got.named:
			return fmt.Errorf("%s has no name in the list", hostName(i))
		case h.named == 0 && got.named && h.data == empty: // a member with data may publish its name at any moment
			return fmt.Errorf("%s has a name in the list", hostName(i))
		}
	}
	return nil
}

// compareLearners writes a key, and checks which learners apply it and which ones look live.
func (b *bench) compareLearners() error {
	for i := range b.w.n {
		h := &b.w.hosts[i]
		if h.list != learner || h.unit != active || h.data != current {
			continue
		}
		var revision int64
		err := b.retryUntil(b.patience, func(ctx context.Context) error {
			put, err := b.conn(b.voterToAsk(i)).Put(ctx, "k", time.Now().String())
			if err == nil {
				revision = put.Header.Revision
			}
			return err
		})
		if err != nil {
			return differ("a write is accepted", "%v", err)
		}
		applied := func(ctx context.Context) error {
			got, err := b.conn(i).Get(ctx, "k", clientv3.WithSerializable())
			if err == nil && got.Header.Revision < revision {
				err = fmt.Errorf("it is at revision %d, the write has revision %d", got.Header.Revision, revision)
			}
			return err
		}
		if b.claims.serves(&b.w, i) {
			if err := b.retryUntil(b.patience, applied); err != nil {
				return differ(hostName(i)+" follows", "%v", err)
			}
		} else if err := b.retryUntil(silentFor, applied); err == nil {
			return differ(hostName(i)+" does not follow", "it has applied a write")
		}
		ctx, cancel := context.WithTimeout(b.ctx, 2*time.Second)
		s, err := b.conn(i).Status(ctx, b.hosts[i].client)
		cancel()
		if live := err == nil && s.Leader != 0; live != b.claims.looksLive(&b.w, i) {
			return differ(fmt.Sprintf("%s looks live: %t", hostName(i), !live), "it looks live: %t", live)
		}
	}
	return nil
}

// compareSilence checks that there is no leader and that no linearizable read is answered.
func (b *bench) compareSilence() error {
	for i := range b.w.n {
		h := &b.w.hosts[i]
		if h.list != voter || h.unit != active || h.data != current {
			continue
		}
		err := b.retryUntil(b.patience, func(ctx context.Context) error {
			s, err := b.conn(i).Status(ctx, b.hosts[i].client)
			if err == nil && s.Leader != 0 {
				err = fmt.Errorf("%s reports %x as leader", hostName(i), s.Leader)
			}
			return err
		})
		if err != nil {
			return differ("without a quorum there is no leader", "%v", err)
		}
		ctx, cancel := context.WithTimeout(b.ctx, silentFor)
		_, err = b.conn(i).Get(ctx, "k")
		cancel()
		if err == nil {
			return differ("without a quorum no member serves a linearizable read", "%s serves one", hostName(i))
		}
	}
	return nil
}
