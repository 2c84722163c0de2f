// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build realetcd

package model

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// readdressBench compares real members with the claims of the worlds in readdress_world_test.go.
type readdressBench struct {
	*testing.T
	c   *testbed.Cluster
	ids []uint64
}

// active reports whether the etcd of a member counts another one as active.
func (b *readdressBench) active(from, to int) (bool, error) {
	answer, err := http.Get(b.c.Members[from].Options.ClientURL + "/metrics")
	if err != nil {
		return false, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	active := fmt.Sprintf(`etcd_network_active_peers{Local="%x",Remote="%x"} 1`, b.ids[from], b.ids[to])
	return strings.Contains(string(text), active), err
}

// waitActive waits until the other members count member i as active, or as not active.
func (b *readdressBench) waitActive(what string, i int, want bool) {
	b.Helper()
	testbed.Eventually(b, 30*time.Second, what, func() bool {
		for from := range b.c.Members {
			if got, err := b.active(from, i); from != i && (err != nil || got != want) {
				return false
			}
		}
		return true
	})
}

// listensAt restarts a member with a different peer URL to listen on.
func (b *readdressBench) listensAt(i int, url string) {
	b.Helper()
	m := b.c.Members[i]
	ctx, cancel := context.WithTimeout(b.Context(), 30*time.Second)
	defer cancel()
	if err := m.Terminate(); err != nil {
		b.Fatal(err)
	}
	_ = m.Wait(ctx) // the error reports the signal
	m.Options.PeerURL, m.Options.ListenPeerURL = url, url
	if err := m.Restart(b.Context()); err != nil { // the process ends with this context
		b.Fatal(err)
	}
	if err := m.WaitReady(ctx); err != nil {
		b.Fatal(err)
	}
}

func (b *readdressBench) update(i int, url string) error {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
	defer cancel()
	_, err := b.c.Client(b).MemberUpdate(ctx, b.ids[i], []string{url})
	return err
}

func TestRealEtcdConnectsToReaddressedMembersAsTheModelClaims(t *testing.T) {
	t.Parallel()
	b := &readdressBench{T: t, c: testbed.StartCluster(t, 3, testbed.ClusterOptions{})}
	list, err := b.c.Client(t).MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range b.c.Members {
		i := slices.IndexFunc(list.Members, func(l *etcdserverpb.Member) bool { return l.PeerURLs[0] == m.Options.PeerURL })
		b.ids = append(b.ids, list.Members[i].ID)
	}
	ports := testbed.FreePorts(t, 2)
	next, unregistered := fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	b.waitActive("the others are connected to n2", 1, true)

	if err := b.update(1, b.c.Members[2].Options.PeerURL); err == nil ||
		!strings.Contains(err.Error(), rpctypes.ErrorDesc(rpctypes.ErrGRPCPeerURLExist)) {
		t.Errorf("the URL of another member: %v", err)
	}
	if err := b.update(1, next); err != nil {
		t.Fatal(err)
	}
	b.waitActive("an update ends no connection", 1, true)
	b.listensAt(1, next)
	b.waitActive("the others connect to the new URL", 1, true)
	b.listensAt(1, unregistered)
	b.waitActive("the others do not connect to a URL that is not registered", 1, false)
	answer, err := b.c.Client(t).MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range answer.Members {
		if m.ID == b.ids[1] && !slices.Equal(m.PeerURLs, []string{next}) {
			t.Errorf("the environment of a member with data changes its registered URL to %v", m.PeerURLs)
		}
	}
	if err := b.update(1, unregistered); err != nil {
		t.Fatal(err)
	}
	b.waitActive("the others connect after it is registered", 1, true)
}
