// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestAccessesThatNoOrderExplainsAreFound(t *testing.T) {
	t.Parallel()
	write := func(value string, from, to time.Duration) Access {
		return Access{Register: "r", Write: true, Value: value, Call: from, Return: to}
	}
	read := func(value string, from, to time.Duration) Access {
		return Access{Client: 1, Register: "r", Value: value, Call: from, Return: to}
	}
	lost := write("b", 3, 0)
	lost.Unknown = true
	for _, c := range []struct {
		what string
		all  []Access
		fits bool
	}{
		{"one after the other", []Access{read("", 0, 1), write("a", 1, 2), read("a", 3, 4)}, true},
		{"a read meanwhile sees either", []Access{write("a", 1, 5), read("", 2, 3), read("a", 4, 6)}, true},
		{"a write was lost", []Access{write("a", 1, 2), read("", 3, 4)}, false},
		{"an old value comes back", []Access{write("a", 1, 2), write("b", 3, 4), read("a", 5, 6)}, false},
		{"a value is read, and then the preceding value", []Access{
			write("a", 1, 2), write("b", 3, 9), read("b", 4, 5), read("a", 6, 7),
		}, false},
		{"a value that was never written", []Access{write("a", 1, 2), read("c", 3, 4)}, false},
		{"a write with an unknown outcome takes effect late", []Access{
			write("a", 1, 2), lost, read("a", 5, 6), read("b", 7, 8),
		}, true},
		{"a write with an unknown outcome takes no effect", []Access{write("a", 1, 2), lost, read("a", 5, 6)}, true},
		{"a write with an unknown outcome takes effect and is undone", []Access{
			write("a", 1, 2), lost, read("b", 5, 6), read("a", 7, 8),
		}, false},
	} {
		if err := Linearizable(c.all); (err == nil) != c.fits {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

func TestRegistersOfARealEtcdAreLinearizable(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 1, ClusterOptions{})
	r := busyRegisters(t, c, func() {})
	seen, err := r.Stop()
	if err = errors.Join(err, Linearizable(seen)); err != nil {
		t.Error(err)
	}
}

// busyRegisters starts two clients that write and read, and waits until both have done so for a while. Meanwhile it
// calls do repeatedly. The clients continue afterwards.
func busyRegisters(t *testing.T, c *Cluster, do func()) *Registers {
	t.Helper()
	r, err := StartRegisters(t.Context(), append(c.Endpoints(), c.Endpoints()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	Eventually(t, time.Minute, "both clients have written and read", func() bool {
		do()
		r.mu.Lock()
		defer r.mu.Unlock()
		seen := map[[2]any]int{}
		for _, a := range r.all {
			if !a.Unknown {
				seen[[2]any{a.Client, a.Write}]++
			}
		}
		return len(seen) == 4 && len(r.all) > 60
	})
	return r
}

// TestWritesThatARealEtcdLosesOrReadsTooLateAreFound uses a third client that undoes writes of the other two, so that
// etcd appears to have lost a write or to return an old value.
func TestWritesThatARealEtcdLosesOrReadsTooLateAreFound(t *testing.T) {
	t.Parallel()
	for what, undo := range map[string]func(context.Context, *clientv3.Client) error{
		"writes are lost": func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.Delete(ctx, "registers/", clientv3.WithPrefix())
			return err
		},
		"reads are stale": putBackFirst,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := StartCluster(t, 1, ClusterOptions{})
			client := c.Client(t)
			r := busyRegisters(t, c, func() {
				if err := undo(t.Context(), client); err != nil {
					t.Fatal(err)
				}
			})
			seen, err := r.Stop()
			if err != nil {
				t.Fatal(err)
			}
			err = Linearizable(seen)
			t.Log(err)
			if err == nil || strings.Contains(err.Error(), "has not finished") {
				t.Errorf("%s, and that is not found", what)
			}
		})
	}
}

func TestALostWriteToAnUnusedRegisterIsFound(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 1, ClusterOptions{})
	r := busyRegisters(t, c, func() {})
	r.mu.Lock()
	first := r.all[0].Register
	r.mu.Unlock()
	Eventually(t, time.Minute, "both clients use a different register", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		on := map[int]string{}
		for _, a := range r.all {
			on[a.Client] = a.Register
		}
		return on[0] != first && on[1] != first
	})
	if _, err := c.Client(t).Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	seen, err := r.Stop()
	if err != nil {
		t.Fatal(err)
	}
	if err := Linearizable(seen); err == nil || !strings.Contains(err.Error(), first) {
		t.Errorf("%s is gone, and the result is %v", first, err)
	}
}

// putBackFirst restores the first value of each register.
func putBackFirst(ctx context.Context, c *clientv3.Client) error {
	now, err := c.Get(ctx, "registers/", clientv3.WithPrefix())
	if err != nil {
		return err
	}
	for _, kv := range now.Kvs {
		first, err := c.Get(ctx, string(kv.Key), clientv3.WithRev(kv.CreateRevision))
		if err != nil {
			return err
		}
		if _, err := c.Put(ctx, string(kv.Key), string(first.Kvs[0].Value)); err != nil {
			return err
		}
	}
	return nil
}
