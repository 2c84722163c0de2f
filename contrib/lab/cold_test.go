//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/contrib/lab"
)

func TestAClusterSurvivesASimultaneousShutdownAndStartOfAllHosts(t *testing.T) {
	coldStarts(t, 1)
}

func TestAClusterSurvivesTenShutdownsAndStartsOfAllHosts(t *testing.T) { coldStarts(t, 10) }

// coldStarts types "poweroff" on all hosts within one second, then powers all of them on at once. The cluster must
// recover by itself, with the same members and everything that was ever written.
func coldStarts(t *testing.T, times int) {
	t.Helper()
	f := formedFleetRunning(t)
	f.killed = true // an agent may go down before the history has the beginning of its operation
	before, aside := f.roles(), f.movedAside()
	for i := range times {
		f.waitIdle()
		client, err := f.client()
		f.check(err)
		ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
		_, err = client.Put(ctx, fmt.Sprintf("cold/%d", i), "x")
		cancel()
		f.check(err)

		began := time.Now()
		f.check(f.Each(func(h *lab.Host) error { return h.ShutDown(t.Context()) }))
		off := time.Now()
		f.check(f.Each(func(h *lab.Host) error { return h.PowerOn(t.Context()) }))
		f.verify(3, 1)
		t.Logf("round %d: all were off after %.0f s, and the cluster was back %.0f s later", i+1,
			off.Sub(began).Seconds(), time.Since(off).Seconds())
		if after := f.roles(); !maps.Equal(before, after) {
			t.Fatalf("the members were %v, but are now %v", before, after)
		}
		f.checkNothingLost(i + 1)
	}
	for _, h := range f.Hosts {
		f.eventually(h.Name+" answers", func() bool { _, ok := f.status(h); return ok })
		if s, _ := f.status(h); s.Recovery != nil || s.LastRecovery != nil {
			t.Errorf("%s has recovered something: %+v, %+v", h.Name, s.Recovery, s.LastRecovery)
		}
	}
	if now := f.movedAside(); !slices.Equal(aside, now) {
		t.Errorf("set aside was %v, and is %v", aside, now)
	}
}

// checkNothingLost checks that the data written before each of that many cold starts is still in the store.
func (f *fleet) checkNothingLost(starts int) {
	f.t.Helper()
	client, err := f.client()
	f.check(err)
	ctx, cancel := context.WithTimeout(f.t.Context(), callTimeout)
	defer cancel()
	answer, err := client.Get(ctx, "cold/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	f.check(err)
	if int(answer.Count) != starts {
		f.t.Errorf("%d of %d keys are there", answer.Count, starts)
	}
}

// movedAside returns all data that hosts have moved aside.
func (f *fleet) movedAside() []string {
	f.t.Helper()
	var all []string
	for _, h := range f.Hosts {
		for _, path := range f.movedAsideOn(h) {
			all = append(all, h.Name+":"+path)
		}
	}
	return all
}
