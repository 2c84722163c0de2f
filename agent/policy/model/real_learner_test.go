// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build realetcd

package model

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// learnerClaim is a world of three voters, A to C, and the permanent learner D. E is added as a second learner.
type learnerClaim struct {
	limit   uint8 // the limit on learners of every running etcd
	lowered uint8 // the voter whose limit is 1 instead, plus 1; 0 if there is none
}

// world returns the model's world before E is added.
func (c learnerClaim) world() *world {
	w := &world{n: maxHosts, lock: -1}
	for i := range 3 {
		w.hosts[i] = host{list: voter, named: 1, unit: active, data: current}
	}
	w.hosts[hostD] = host{list: learner, named: 1, unit: active, data: current}
	w.permanent, w.limit, w.lowered = hostD+1, c.limit, c.lowered
	return w
}

// learnerBench is a real cluster that must match a learnerClaim.
type learnerBench struct {
	*testing.T
	c    *testbed.Cluster
	peer string // the peer URL of E, which never starts
}

func newLearnerBench(t *testing.T, claim learnerClaim) *learnerBench {
	t.Helper()
	b := &learnerBench{T: t, c: testbed.StartCluster(t, 3, testbed.ClusterOptions{
		Version: "v3.6", Extra: []string{fmt.Sprintf("--max-learners=%d", claim.limit)},
	})}
	if claim.lowered != 0 {
		b.restart(b.c.Members[claim.lowered-1], 1)
	}
	ports, o := testbed.FreePorts(t, 3), b.c.Members[0].Options
	o.Name, o.Dir, o.State = hostName(hostD), t.TempDir(), "existing"
	o.ClientURL, o.PeerURL = fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	o.InitialCluster += "," + o.Name + "=" + o.PeerURL
	o.Extra = []string{fmt.Sprintf("--max-learners=%d", claim.limit)}
	b.peer = fmt.Sprintf("http://127.0.0.1:%d", ports[2])
	if err := b.add(0, o.PeerURL); err != nil {
		t.Fatal(err)
	}
	m, err := testbed.StartMember(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	m.StopAfter(t)
	client, err := m.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	testbed.Eventually(t, longPatience, "the learner follows a leader", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		s, err := client.Status(ctx, o.ClientURL)
		return err == nil && s.IsLearner && s.Leader != 0
	})
	return b
}

// restart restarts a member with a different limit on learners.
func (b *learnerBench) restart(m *testbed.Member, limit uint8) {
	b.Helper()
	b.stop(m)
	m.Options.Extra = append(slices.Clip(m.Options.Extra), fmt.Sprintf("--max-learners=%d", limit))
	if err := m.Restart(b.Context()); err != nil { // the process ends with this context
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.Context(), longPatience)
	defer cancel()
	if err := m.WaitReady(ctx); err != nil {
		b.Fatal(err)
	}
}

func (b *learnerBench) stop(m *testbed.Member) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), longPatience)
	defer cancel()
	if err := m.Terminate(); err != nil {
		b.Fatal(err)
	}
	_ = m.Wait(ctx) // the error reports the signal
}

// add asks a voter to add a learner, and retries until etcd's strict check of connections passes.
func (b *learnerBench) add(through int, peer string) (err error) {
	b.Helper()
	client, err := b.c.Members[through].Client()
	if err != nil {
		return err
	}
	defer client.Close()
	testbed.Eventually(b, longPatience, "the addition is accepted or refused", func() bool {
		ctx, cancel := context.WithTimeout(b.Context(), longPatience)
		defer cancel()
		_, err = client.MemberAddAsLearner(ctx, []string{peer})
		return err == nil || !strings.Contains(err.Error(), rpctypes.ErrorDesc(rpctypes.ErrGRPCUnhealthy))
	})
	return err
}

// learners returns the peer URLs of the learners that a member lists, from its own data.
func (b *learnerBench) learners(m *testbed.Member) (urls []string) {
	b.Helper()
	client, err := m.Client()
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Second)
	defer cancel()
	list, err := client.MemberList(ctx, clientv3.WithSerializable())
	if err != nil {
		return nil
	}
	for _, m := range list.Members {
		if m.IsLearner {
			urls = append(urls, m.PeerURLs...)
		}
	}
	slices.Sort(urls)
	return urls
}

func TestRealEtcdLimitsLearnersAsTheModelClaims(t *testing.T) {
	t.Parallel()
	for name, claim := range map[string]learnerClaim{
		"two places on every member":          {limit: 2},
		"one place on every member":           {limit: 1},
		"one place on a voter, two on others": {limit: 2, lowered: hostC + 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, b := claim.world(), newLearnerBench(t, claim)
			err := b.add(hostA, b.peer)
			refused := err != nil && strings.Contains(err.Error(), rpctypes.ErrorDesc(rpctypes.ErrGRPCTooManyLearners))
			if err != nil && !refused {
				t.Fatal(err)
			}
			if claimed := w.limit < 2; refused != claimed {
				t.Errorf("refused: %t, the model claims %t", refused, claimed)
			}
			differ := func() bool {
				return !slices.Equal(b.learners(b.c.Members[hostC]), b.learners(b.c.Members[hostA]))
			}
			if !refused {
				testbed.Eventually(t, longPatience, "the leader lists the second learner", func() bool {
					return len(b.learners(b.c.Members[hostA])) == 2
				})
			}
			claimed := w.judgeLearnerAdd(hostE) == limitsDiffer
			testbed.Eventually(t, longPatience, fmt.Sprintf("the member lists differ: %t", claimed), func() bool {
				return differ() == claimed
			})
		})
	}
}

// The policy does not stop an etcd if its next start is known to allow fewer learners than are listed, unless its
// machine goes down anyway.
func TestRealEtcdDoesNotStartWithFewerPlacesThanListedLearners(t *testing.T) {
	t.Parallel()
	b := newLearnerBench(t, learnerClaim{limit: 2})
	if err := b.add(hostA, b.peer); err != nil {
		t.Fatal(err)
	}
	m := b.c.Members[hostB]
	b.stop(m)
	m.Options.Extra = append(slices.Clip(m.Options.Extra), "--max-learners=1")
	if err := m.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), longPatience)
	defer cancel()
	if err := m.Wait(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("it starts: %v", err)
	}
	if log := m.LogTail(20); !strings.Contains(log, "too many learner members in cluster") {
		t.Errorf("it does not report why: %s", log)
	}
}
