// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build realetcd

package model

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/datadir"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// Timings of the real members. etcd has one more, which cannot be changed: the member that receives an addition must
// have had its connections for 5 s.
const (
	realHeartbeat = 60 * time.Millisecond
	realElection  = 480 * time.Millisecond
	longPatience  = 25 * time.Second // for an expected event, even on a busy machine
	shortPatience = 11 * time.Second // for an event that is expected not to happen
	tick          = 20 * time.Millisecond
)

// realHost is a host of a bench: the URLs of its member, its directory and its process.
type realHost struct {
	client, peer, listen string // URLs, and etcd's listen address for its peers
	dir                  string
	member               *testbed.Member // the last one started
	initial, state       string          // the environment for the next start
	id                   uint64          // the ID of its listed member, or 0
	ready                bool            // the member whose data this host has was ready at least once
	conn                 *clientv3.Client
}

// bench is a real cluster, and the world that it must match.
type bench struct {
	t      testing.TB
	ctx    context.Context
	binary string
	claims claims
	// patience limits the wait for an expected event.
	patience time.Duration

	w           world
	hosts       [maxHosts]*realHost
	net         *peerProxies
	story       []string       // the operations so far, with the state after each
	openAnswers map[string]int // how many times etcd did something that the model does not determine, by what it did
	calls       int
}

// newBench starts a cluster with that many voters, or none if 0.
func newBench(t testing.TB, version string, c claims, voters int, patience time.Duration) *bench {
	t.Helper()
	b := &bench{
		t: t, ctx: t.Context(), binary: testbed.Etcd(t, version), claims: c, patience: patience,
		openAnswers: map[string]int{}, net: &peerProxies{hosts: map[uint64]int{}, open: map[*forwardedRequest]bool{}},
	}
	b.w = world{n: maxHosts, lock: -1}
	ports, dir := testbed.FreePorts(t, 3*maxHosts), t.TempDir()
	for i := range b.hosts {
		h := &realHost{
			client: fmt.Sprintf("http://127.0.0.1:%d", ports[3*i]),
			peer:   fmt.Sprintf("http://127.0.0.1:%d", ports[3*i+1]),
			listen: fmt.Sprintf("127.0.0.1:%d", ports[3*i+2]), dir: filepath.Join(dir, hostName(i)),
		}
		if err := os.Mkdir(h.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		b.hosts[i] = h
		b.net.connect(t, i, strings.TrimPrefix(h.peer, "http://"), h.listen)
	}
	var initial []string
	for i := range voters {
		b.w.hosts[i] = host{list: voter, named: 1, unit: active, data: current}
		initial = append(initial, hostName(i)+"="+b.hosts[i].peer)
	}
	for i := range voters {
		b.hosts[i].initial, b.hosts[i].state, b.hosts[i].ready = strings.Join(initial, ","), "new", true
		b.spawn(i)
	}
	b.story = append(b.story, "     at first "+b.text())
	return b
}

func (b *bench) text() string {
	var parts []string
	for i := range b.w.n {
		if b.w.hosts[i] != (host{}) {
			parts = append(parts, hostName(i)+"="+b.w.hosts[i].etcdText())
		}
	}
	return strings.Join(parts, "  ")
}

// spawn starts the etcd of a host.
func (b *bench) spawn(i int) {
	b.t.Helper()
	h := b.hosts[i]
	m, err := testbed.StartMember(context.WithoutCancel(b.ctx), testbed.MemberOptions{
		Binary: b.binary, Name: hostName(i), Dir: h.dir, ClientURL: h.client, PeerURL: h.peer,
		ListenPeerURL:  "http://" + h.listen,
		InitialCluster: h.initial, State: h.state, Token: b.hosts[0].peer, Heartbeat: realHeartbeat,
		Election: realElection,
		Extra:    []string{"--log-level=warn", "--pre-vote=true", "--unsafe-no-fsync"},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	h.member = m
}

// runs reports whether the etcd process of a host runs.
func (h *realHost) runs() bool {
	if h.member == nil {
		return false
	}
	select {
	case <-h.member.Done():
		return false
	default:
		return true
	}
}

// stopEtcd ends the etcd process of a host.
func (b *bench) stopEtcd(i int, how func(*testbed.Member) error) error {
	h := b.hosts[i]
	if !h.runs() {
		return nil
	}
	_ = how(h.member) // it may have exited by itself
	return b.waitExited(i)
}

// waitExited waits until the etcd process of a host has exited.
func (b *bench) waitExited(i int) error {
	bound := b.patience
	if b.mayHang(i) {
		bound = 2 * time.Second
	}
	ctx, cancel := context.WithTimeout(b.ctx, bound)
	defer cancel()
	if _ = b.hosts[i].member.Wait(ctx); ctx.Err() != nil {
		return fmt.Errorf("etcd on %s still runs after %s", hostName(i), bound)
	}
	return nil
}

// mayHang reports whether an etcd may fail to exit, even after SIGTERM.
func (b *bench) mayHang(i int) bool { return b.w.mayHang(i) && !b.hosts[i].ready }

// killHanging kills an etcd that does not stop. systemd would kill it, too.
func (b *bench) killHanging(i int) error {
	b.openAnswers["a removed member that has never been ready hangs"]++
	return b.stopEtcd(i, (*testbed.Member).Kill9)
}

// processes returns which members run, and the last lines of their logs.
func (b *bench) processes() string {
	var text strings.Builder
	for i, h := range b.hosts {
		if h.member != nil {
			fmt.Fprintf(&text, "%s runs: %t; its log ends with\n%s\n", hostName(i), h.runs(), h.member.LogTail(5))
		}
	}
	return text.String()
}

// close ends all processes and removes their data.
func (b *bench) close() {
	for i, h := range b.hosts {
		if h.runs() {
			_ = h.member.Kill9()
			<-h.member.Done()
		}
		if h.conn != nil {
			h.conn.Close()
		}
		_ = os.RemoveAll(b.hosts[i].dir)
	}
}

// conn returns a client of one member only.
func (b *bench) conn(i int) *clientv3.Client {
	h := b.hosts[i]
	if h.conn == nil {
		m := testbed.Member{Options: testbed.MemberOptions{ClientURL: h.client}}
		var err error
		if h.conn, err = m.Client(); err != nil {
			b.t.Fatal(err)
		}
	}
	return h.conn
}

// retryUntil calls ask repeatedly until it succeeds or the bound has passed.
func (b *bench) retryUntil(bound time.Duration, ask func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(b.ctx, bound)
	defer cancel()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		once, done := context.WithTimeout(ctx, 2*time.Second)
		err := ask(once)
		done()
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("for %s: %w", bound, err)
		}
	}
}

// voterToAsk returns a running voter, if possible one other than i.
func (b *bench) voterToAsk(i int) int {
	found := -1
	for g := range b.w.n {
		h := &b.w.hosts[g]
		if h.list == voter && b.w.runs(g) && (found < 0 || found == i ||
			(h.unit == active && b.w.hosts[found].unit != active && g != i)) {
			found = g
		}
	}
	return found
}

// list returns the member list of a voter, and records the IDs.
func (b *bench) list(ctx context.Context, i int) (map[int]*member, error) {
	got, err := b.conn(i).MemberList(ctx)
	if err != nil {
		return nil, err
	}
	all := map[int]*member{}
	for _, m := range got.Members {
		g := slices.IndexFunc(b.hosts[:], func(h *realHost) bool { return slices.Contains(m.PeerURLs, h.peer) })
		if g < 0 {
			return nil, fmt.Errorf("a member is listed at %v, which is no host's URL", m.PeerURLs)
		}
		b.hosts[g].id = m.ID
		b.net.setHost(m.ID, g)
		all[g] = &member{m.Name != "", m.IsLearner}
	}
	for g, h := range b.hosts {
		if all[g] == nil {
			h.id = 0
		}
	}
	return all, nil
}

// member is an entry of the member list.
type member struct{ named, learner bool }

// listed returns the role of a member in the list. A nil member is unlisted.
func (m *member) listed() uint8 {
	switch {
	case m == nil:
		return unlisted
	case m.learner:
		return learner
	}
	return voter
}

// data returns the content of a host's directory.
func (b *bench) data(i int) uint8 {
	found := datadir.Inspect(filepath.Join(b.hosts[i].dir, "data"), "")
	switch {
	case found.Empty:
		return empty
	case found.MemberID == 0:
		return remains
	case found.MemberID == b.hosts[i].id:
		return current
	}
	return old
}

// answerOf returns etcd's answer to a membership change. known is false for any other error, for example without a
// leader.
func answerOf(err error) (a answer, known bool) {
	if err == nil {
		return accepted, true
	}
	var etcdErr rpctypes.EtcdError
	if !errors.As(rpctypes.Error(err), &etcdErr) {
		return 0, false
	}
	for a = unhealthyCluster; a < answers; a++ {
		if slices.Contains(a.texts(), etcdErr.Error()) {
			return a, true
		}
	}
	return 0, false
}
