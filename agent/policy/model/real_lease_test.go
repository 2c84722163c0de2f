// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build realetcd

package model

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// These tests check the assumptions of time.go about leases. A lease never ends before its holder's validity, which
// counts from before the request was sent. It may end at any later time, but not without a quorum.

const leaseBound = 30 * time.Second

func leaseCluster(t *testing.T, version string, members int) *testbed.Cluster {
	t.Helper()
	return testbed.StartCluster(t, members, testbed.ClusterOptions{
		Version: version, Heartbeat: realHeartbeat, Election: realElection,
		Extra: []string{"--unsafe-no-fsync", "--log-level=warn"},
	})
}

// heldKey is a key with a lease.
type heldKey struct {
	client *clientv3.Client
	key    string
	lease  clientv3.LeaseID
	sent   time.Time // when the lease was last requested or renewed
	ttl    time.Duration
}

func newHeldKey(ctx context.Context, client *clientv3.Client, key string, seconds int64) (*heldKey, error) {
	h := &heldKey{client: client, key: key, sent: time.Now()}
	lease, err := client.Grant(ctx, seconds)
	if err != nil {
		return nil, err
	}
	h.lease, h.ttl = lease.ID, time.Duration(lease.TTL)*time.Second
	_, err = client.Put(ctx, key, "held", clientv3.WithLease(h.lease))
	return h, err
}

// end waits until the key is deleted, and returns when it was first observed to be missing.
func (h *heldKey) end(ctx context.Context) (time.Time, error) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		once, done := context.WithTimeout(ctx, time.Second)
		got, err := h.client.Get(once, h.key)
		done()
		if err == nil && got.Count == 0 {
			return time.Now(), nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("%s still exists: %w", h.key, ctx.Err())
		}
	}
}

func eachVersion(t *testing.T, test func(t *testing.T, ctx context.Context, version string)) {
	t.Helper()
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), leaseBound)
			defer cancel()
			test(t, ctx, version)
		})
	}
}

func TestALeaseNeverEndsBeforeItsHoldersValidity(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, ctx context.Context, version string) {
		client := leaseCluster(t, version, 1).Client(t)
		ends := make(chan error)
		const leases = 20
		for i := range leases {
			go func() {
				h, err := newHeldKey(ctx, client, fmt.Sprintf("lock-%d", i), 1)
				if err == nil && i%2 == 0 { // every second lease is renewed once
					<-time.After(time.Duration(i) * 40 * time.Millisecond)
					if err = h.renew(ctx); errors.Is(err, errTooLate) { // this machine was too busy
						ends <- nil
						return
					}
				}
				if err == nil {
					err = h.checkNotEarly(ctx)
				}
				ends <- err
			}()
		}
		for range leases {
			if err := <-ends; err != nil {
				t.Error(err)
			}
		}
	})
}

// errTooLate means that a lease had ended, and that the attempt to renew it came only after its validity.
var errTooLate = errors.New("renewed too late")

// renew renews the lease, which must not have ended while its holder considers it valid.
func (h *heldKey) renew(ctx context.Context) error {
	sent := time.Now()
	_, err := h.client.KeepAliveOnce(ctx, h.lease)
	switch late := time.Since(h.sent) >= h.ttl; {
	case errors.Is(err, rpctypes.ErrLeaseNotFound) && late:
		return errTooLate
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		return fmt.Errorf("the lease of %s ended within its validity: %w", h.key, err)
	}
	h.sent = sent
	return err
}

// checkNotEarly waits for the end of a lease, and checks that its holder's validity had ended before.
func (h *heldKey) checkNotEarly(ctx context.Context) error {
	at, err := h.end(ctx)
	if err != nil {
		return err
	}
	if lasted := at.Sub(h.sent); lasted < h.ttl {
		return fmt.Errorf("%s ended %s after its lease of %s was requested", h.key, lasted, h.ttl)
	}
	if _, err := h.client.KeepAliveOnce(ctx, h.lease); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return fmt.Errorf("renewal of an expired lease: %w", err)
	}
	if _, err := h.client.Put(ctx, h.key, "late", clientv3.WithLease(h.lease)); !errors.Is(err,
		rpctypes.ErrLeaseNotFound) {
		return fmt.Errorf("a late write with an expired lease: %w", err)
	}
	return nil
}

func TestARevokedLeaseDeletesItsKeyAndRefusesLateWrites(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, ctx context.Context, version string) {
		client := leaseCluster(t, version, 1).Client(t)
		h, err := newHeldKey(ctx, client, "lock", 60)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Revoke(ctx, h.lease); err != nil {
			t.Fatal(err)
		}
		if got, err := client.Get(ctx, "lock"); err != nil || got.Count != 0 {
			t.Errorf("the key exists after its lease was revoked: %v, %v", got, err)
		}
		_, err = client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision("lock"), "=",
			0)).Then(clientv3.OpPut("lock", "late", clientv3.WithLease(h.lease))).Commit()
		if !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			t.Errorf("late write of the lock with a revoked lease: %v", err)
		}
	})
}

func TestALeadershipChangeExtendsEveryLeaseToItsFullTime(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, ctx context.Context, version string) {
		cluster := leaseCluster(t, version, 3)
		client := cluster.Client(t)
		h, err := newHeldKey(ctx, client, "lock", 4)
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Until(h.sent.Add(3 * time.Second)))
		moved := time.Now()
		if err := moveLeader(ctx, cluster); err != nil {
			t.Fatal(err)
		}
		at, err := h.end(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if lasted := at.Sub(moved); lasted < h.ttl {
			t.Errorf("the lease of %s ended %s after the leadership transfer, %s after it was requested",
				h.ttl, lasted, at.Sub(h.sent))
		}
		t.Logf("a lease of %s lasted %s; the leader changed after %s", h.ttl, at.Sub(h.sent).Round(10*time.Millisecond),
			moved.Sub(h.sent).Round(10*time.Millisecond))
	})
}

func moveLeader(ctx context.Context, cluster *testbed.Cluster) error {
	leader, err := cluster.Leader(ctx)
	if err != nil {
		return err
	}
	from, err := leader.Client()
	if err != nil {
		return err
	}
	defer from.Close()
	list, err := from.MemberList(ctx)
	if err != nil {
		return err
	}
	for _, m := range list.Members {
		if m.Name != leader.Options.Name {
			_, err = from.MoveLeader(ctx, m.ID)
			return err
		}
	}
	return errors.New("there is no other member")
}

func TestALeaseDoesNotEndWithoutAQuorum(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, ctx context.Context, version string) {
		cluster := leaseCluster(t, version, 3)
		h, err := newHeldKey(ctx, cluster.Client(t), "lock", 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range cluster.Members[:2] {
			if err := errors.Join(m.Kill9(), ignoreExit(m.Wait(ctx))); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(time.Until(h.sent.Add(2 * h.ttl)))
		back := time.Now()
		for _, m := range cluster.Members[:2] {
			if err := m.Restart(ctx); err != nil {
				t.Fatal(err)
			}
		}
		at, err := h.end(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if at.Sub(back) < h.ttl {
			t.Errorf("the lease of %s ended %s after the quorum returned", h.ttl, at.Sub(back))
		}
	})
}

// ignoreExit returns the error only if the wait timed out.
func ignoreExit(err error) error {
	if err != nil && errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

func TestTheShortestLeaseIsOneAndAHalfElectionTimeouts(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, ctx context.Context, version string) {
		for election, want := range map[time.Duration]int64{
			300 * time.Millisecond: 1, time.Second: 2,
			3 * time.Second: 5,
		} {
			cluster := testbed.StartCluster(t, 1, testbed.ClusterOptions{
				Version: version, Heartbeat: election / 10, Election: election, Extra: []string{"--unsafe-no-fsync"},
			})
			got, err := cluster.Client(t).Grant(ctx, 1)
			if err != nil || got.TTL != want {
				t.Errorf("with an election timeout of %s the shortest lease is %v, %v; want %d s", election, got, err,
					want)
			}
		}
	})
}
