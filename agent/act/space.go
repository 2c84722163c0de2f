// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/lock"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// defragmentation runs online defragmentations, one at a time. A defragmentation may take longer than a step, so it
// runs in the background.
type defragmentation struct {
	mu     sync.Mutex
	member uint64 // 0 if none runs
	cancel context.CancelFunc
	ended  []round.Defragmented // the last defragmentation of each member
}

// state returns the member that is defragmenting its database, 0 if none is, and how the last defragmentation of each
// member ended.
func (d *defragmentation) state() (uint64, []round.Defragmented) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.member, slices.Clone(d.ended)
}

// start calls f for a member in the background. It returns an error if an earlier call has not returned.
func (d *defragmentation) start(member uint64, now func() time.Duration, f func(context.Context) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.member != 0 {
		return fmt.Errorf("member %x is still defragmenting its database", d.member)
	}
	ctx, cancel := context.WithTimeout(context.Background(), policy.DefragmentMax)
	d.member, d.cancel = member, cancel
	go func() {
		defer cancel()
		err := f(ctx)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.member = 0
		d.ended = slices.DeleteFunc(d.ended, func(e round.Defragmented) bool { return e.MemberID == member })
		d.ended = append(d.ended, round.Defragmented{MemberID: member, At: now(), Err: err})
	}()
	return nil
}

// stop cancels the call, so that the agent can exit. The member may continue to defragment its database.
func (d *defragmentation) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.member != 0 {
		d.cancel()
	}
}

// errPermitTaken means that this agent was too late to claim a permit to free space.
var errPermitTaken = errors.New("another agent has claimed the permit to free space, or has taken the lock")

// writePermits writes the missing permits to free space.
func (a *Actor) writePermits(ctx context.Context, _ *task) error {
	for n := 1; n <= policy.MaxPermits; n++ {
		key := a.keys.Permit(n)
		if _, err := a.opt.Etcd.Txn(ctx, []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", 0)},
			clientv3.OpPut(key, record.PermitUnclaimed)); err != nil {
			return err
		}
	}
	return nil
}

// claimPermit deletes the first permit that is left, if no agent holds the lock. After an error, it is unknown whether
// the key was deleted, so this agent has no permit. It can claim the next one later.
func (a *Actor) claimPermit(ctx context.Context, t *task) error {
	permits := t.on.Permits
	if len(permits) == 0 {
		return errors.New("all permits to free space have been claimed")
	}
	first := permits[0]
	answer, err := a.opt.Etcd.Txn(ctx, []clientv3.Cmp{
		clientv3.Compare(clientv3.CreateRevision(a.keys.Lock()), "=", 0),
		clientv3.Compare(clientv3.ModRevision(a.keys.Permit(first.Number)), "=", first.At),
	}, clientv3.OpDelete(a.keys.Permit(first.Number)))
	switch {
	case err != nil:
		return err
	case !answer.Succeeded:
		return errPermitTaken
	}
	return nil
}

// permitSent records when this agent claimed the permit, because the permit is valid from then, not from etcd's answer.
func (a *Actor) permitSent(*task) { a.claimSent = a.opt.Now() }

func (a *Actor) permitClaimed(*task) { a.did.Permit = round.Stamp{Is: true, At: a.claimSent} }

// mayFreeSpace returns an error unless this agent holds the lock or, if no agent does, a permit that is still valid.
func (a *Actor) mayFreeSpace(ctx context.Context, t *task) error {
	if a.opt.Maintenance == nil {
		return errors.New("this agent cannot free space")
	}
	if a.lock.MayAct() {
		return nil
	}
	found, err := a.opt.Etcd.Read(ctx, cluster.Span{Start: a.keys.Lock()})
	switch {
	case err != nil:
		return err
	case len(found.Pairs) > 0, t.on.Did.Permit.Age(a.opt.Now()) >= policy.PermitValid:
		return lock.ErrLost
	}
	return nil
}

func (a *Actor) compact(ctx context.Context, t *task) error {
	return a.opt.Maintenance.Compact(ctx, t.step.Revision)
}

func (a *Actor) compacted(t *task) { a.did.Compacted, a.did.Kept = a.now(), t.step.Revision }

func (a *Actor) leadElsewhere(ctx context.Context, t *task) error {
	m, ok := t.on.Membership.ByID(leaderOf(t.on.View))
	if !ok || len(m.ClientURLs) == 0 {
		return errors.New("cannot transfer leadership: the leader is unknown, or has no client URL")
	}
	return a.opt.Etcd.MoveLeader(ctx, m.ClientURLs[0], t.step.MemberID)
}

// defragmentOnline starts the defragmentation of one member's database.
func (a *Actor) defragmentOnline(_ context.Context, t *task) error {
	m, ok := t.on.Membership.ByID(t.step.MemberID)
	if !ok || len(m.ClientURLs) == 0 {
		return fmt.Errorf("cannot defragment the database of member %x: the member is not in the member list, or has "+
			"no client URL", t.step.MemberID)
	}
	return a.defrag.start(m.ID, a.opt.Now, func(ctx context.Context) error {
		began := a.opt.Now()
		err := a.opt.Maintenance.Defragment(ctx, m.ClientURLs[0])
		if err != nil {
			a.log.Warn("online defragmentation failed", "member", m.Name, "error", err)
			return err
		}
		a.log.Info("online defragmentation done", "member", m.Name, "elapsed", a.opt.Now()-began)
		return nil
	})
}

func (a *Actor) disarmNoSpace(ctx context.Context, _ *task) error {
	return a.opt.Maintenance.DisarmNoSpace(ctx)
}
