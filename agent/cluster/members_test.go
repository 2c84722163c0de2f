// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/contrib/testbed"
)

func contains(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

func TestTheMemberListDistinguishesVotersAndLearners(t *testing.T) {
	t.Parallel()
	etcd, learner := withLearner(t)
	list := members(t, connect(t, etcd.Endpoints()...))
	voter, ok := list.ByPeerURL(etcd.Members[0].Options.PeerURL)
	if !ok || voter.Learner || voter.Name != "n1" || !slices.Equal(voter.ClientURLs, etcd.Endpoints()) {
		t.Errorf("the voter: %+v", voter)
	}
	second, ok := list.ByPeerURL(learner.Options.PeerURL)
	if !ok || !second.Learner {
		t.Errorf("the learner: %+v", second)
	}
	if got, ok := list.ByID(second.ID); !ok || got.ID != second.ID {
		t.Errorf("by ID: %+v", got)
	}
	if m, ok := list.ByID(voter.ID); len(list.Members) != 2 || !ok || m.Learner || list.ClusterID == 0 {
		t.Errorf("got %+v", list)
	}
	if _, ok := list.ByID(1); ok {
		t.Error("found a member that is not there")
	}
	if _, ok := list.ByPeerURL("http://192.0.2.1:2380"); ok {
		t.Error("found a member that is not there")
	}
}

func TestALearnerIsAddedOnlyOnce(t *testing.T) {
	t.Parallel()
	etcd := testbed.StartCluster(t, 1, quick())
	c := connect(t, etcd.Endpoints()...)
	const url = "http://127.0.0.9:2380"
	first, err := c.AddLearner(within(t), url)
	if err != nil || !first.Learner || first.ID == 0 {
		t.Fatalf("got %+v, %v", first, err)
	}
	again, err := c.AddLearner(within(t), url)
	if err != nil || again.ID != first.ID {
		t.Errorf("the second time: %+v, %v", again, err)
	}
	if n := len(members(t, c).Members); n != 2 {
		t.Errorf("there are %d members", n)
	}
	if _, err := c.AddLearner(within(t), "http://127.0.0.9:2381"); !contains(err, "too many learner members") {
		t.Errorf("a second learner: %v", err)
	}
}

func TestALearnerIsFoundAfterAnUnansweredAdd(t *testing.T) {
	t.Parallel()
	m, proxy := behindProxy(t)
	c := connectWith(t, cluster.Options{Endpoints: []string{m.Options.ClientURL}, CallTimeout: 10 * time.Second})
	members(t, c)
	direct, err := clientv3.New(clientv3.Config{Endpoints: []string{m.Options.ListenClientURL}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close()

	const url = "http://127.0.0.9:2380"
	proxy.Set(testbed.Faults{Delay: 300 * time.Millisecond})
	type result struct {
		cluster.Member
		err error
	}
	done := make(chan result, 1)
	go func() {
		added, err := c.AddLearner(within(t), url)
		done <- result{added, err}
	}()
	var id uint64
	testbed.Eventually(t, bound, "the learner is added", func() bool {
		list, err := direct.MemberList(within(t))
		if err != nil || len(list.Members) < 2 {
			return false
		}
		i := slices.IndexFunc(list.Members, func(m *pb.Member) bool { return m.IsLearner })
		id = list.Members[i].ID
		return true
	})
	select {
	case early := <-done:
		t.Fatalf("the answer was not lost: %+v", early)
	default:
	}
	proxy.Set(testbed.Faults{})
	proxy.Reset()
	if got := <-done; got.err != nil || got.ID != id || !got.Learner {
		t.Errorf("got %+v, want member %x", got, id)
	}
	if n := len(members(t, c).Members); n != 2 {
		t.Errorf("there are %d members", n)
	}
}

// behindProxy runs a member whose client URL in the member list is a proxy.
func behindProxy(t *testing.T) (*testbed.Member, *testbed.Proxy) {
	t.Helper()
	ports := testbed.FreePorts(t, 2)
	listen := fmt.Sprintf("127.0.0.1:%d", ports[0])
	proxy := testbed.NewProxy(t, listen)
	m := start(t, testbed.MemberOptions{
		Binary: testbed.Etcd(t, testbed.Small), Name: "n1", Dir: t.TempDir(),
		ClientURL: "http://" + proxy.Addr(), ListenClientURL: "http://" + listen,
		PeerURL:   fmt.Sprintf("http://127.0.0.1:%d", ports[1]),
		Heartbeat: quick().Heartbeat, Election: quick().Election,
	})
	if err := m.WaitReady(within(t)); err != nil {
		t.Fatal(err)
	}
	return m, proxy
}

func TestALearnerIsPromotedOnlyOnceItHasCaughtUp(t *testing.T) {
	t.Parallel()
	etcd := testbed.StartCluster(t, 1, quick())
	c, leader := connect(t, etcd.Endpoints()...), etcd.Endpoints()[0]
	o := learnerOptions(t, etcd)
	added, err := c.AddLearner(within(t), o.PeerURL)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Promote(within(t), added.ID, leader); !contains(err, "in sync with leader") {
		t.Errorf("a learner that has never started: %v", err)
	}
	if err := c.Promote(within(t), 4711, leader); !errors.Is(err, cluster.ErrNotListed) {
		t.Errorf("an unknown member: %v", err)
	}
	if err := c.Promote(within(t), added.ID, noListener(t)); !contains(err, "cannot promote the learner") {
		t.Errorf("at a leader that does not answer: %v", err)
	}
	start(t, o)
	testbed.Eventually(t, bound, "it is promoted", func() bool { return c.Promote(within(t), added.ID, leader) == nil })
	if m, _ := members(t, c).ByID(added.ID); m.Learner || m.ID == 0 {
		t.Errorf("after the promotion the member list has %+v", m)
	}
	if err := c.Promote(within(t), added.ID, leader); err != nil {
		t.Errorf("a second time: %v", err)
	}
	if err := c.RemoveLearner(within(t), added.ID); !contains(err, "it is now a voter") {
		t.Errorf("removing it as a learner: %v", err)
	}
	if _, still := members(t, c).ByID(added.ID); !still {
		t.Error("a voter was removed as if it were a learner")
	}
}

func TestRemovingAMissingLearnerSucceeds(t *testing.T) {
	t.Parallel()
	etcd := testbed.StartCluster(t, 1, quick())
	c := connect(t, etcd.Endpoints()...)
	added, err := c.AddLearner(within(t), "http://127.0.0.9:2380")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.RemoveLearner(within(t), added.ID); err != nil {
			t.Errorf("got %v", err)
		}
		if list := members(t, c); len(list.Members) != 1 {
			t.Errorf("there are %+v", list.Members)
		}
	}
}

func TestTheStatusOfAVoterALearnerAndAnUnstartedMember(t *testing.T) {
	t.Parallel()
	etcd, learner := withLearner(t)
	c := connect(t, etcd.Endpoints()...)
	list := members(t, c)
	voter, _ := list.ByPeerURL(etcd.Members[0].Options.PeerURL)
	second, _ := list.ByPeerURL(learner.Options.PeerURL)
	second.ClientURLs = []string{learner.Options.ClientURL} // the learner may not have published its URL yet
	never := cluster.Member{ID: 4711, Learner: true}
	got := c.Statuses(within(t), []cluster.Member{voter, second, never})
	if s := got[voter.ID]; s.Err != nil || s.MemberID != voter.ID || s.ClusterID != list.ClusterID ||
		s.Leader != voter.ID ||
		s.Learner || !s.Linearizable || s.Index == 0 || s.Applied == 0 || s.Term == 0 || s.DBSize == 0 || s.RTT <= 0 ||
		!strings.HasPrefix(s.Version, "3.6.") || len(s.Errors) > 0 {
		t.Errorf("the voter: %+v", s)
	}
	if s := got[second.ID]; s.Err != nil || s.MemberID != second.ID || s.Leader != voter.ID || !s.Learner ||
		s.Linearizable {
		t.Errorf("the learner: %+v", s)
	}
	if s := got[never.ID]; !contains(s.Err, "it has never started") {
		t.Errorf("the one that never started: %+v", s)
	}
}

func TestPausedMembersTakeAtMostTwoCallsAndHideNoOthers(t *testing.T) {
	t.Parallel()
	etcd := testbed.StartCluster(t, 3, quick())
	leader, err := etcd.Leader(within(t))
	if err != nil {
		t.Fatal(err)
	}
	followers := slices.DeleteFunc(slices.Clone(etcd.Members), func(m *testbed.Member) bool { return m == leader })
	c := connect(t, followers[0].Options.ClientURL, followers[1].Options.ClientURL, leader.Options.ClientURL)
	list := members(t, c)
	of := func(all map[uint64]cluster.Status, m *testbed.Member) cluster.Status {
		member, _ := list.ByPeerURL(m.Options.PeerURL)
		return all[member.ID]
	}
	statuses := func() map[uint64]cluster.Status {
		began := time.Now()
		all := c.Statuses(within(t), list.Members)
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("took %v, two calls take 2s at most, and the machine may be busy", took)
		}
		return all
	}

	if err := followers[0].Pause(); err != nil {
		t.Fatal(err)
	}
	all := statuses()
	if s := of(all, followers[0]); s.Err == nil {
		t.Errorf("a paused member: %+v", s)
	}
	for _, m := range []*testbed.Member{leader, followers[1]} {
		if s := of(all, m); s.Err != nil || !s.Linearizable {
			t.Errorf("a member that runs: %+v", s)
		}
	}
	if _, err := c.Members(within(t)); err != nil {
		t.Errorf("the member list with a paused member: %v", err)
	}

	if err := followers[1].Pause(); err != nil {
		t.Fatal(err)
	}
	all = statuses()
	if s := of(all, leader); s.Err != nil || s.Linearizable {
		t.Errorf("the last of three: %+v", s)
	}
	for _, m := range followers {
		if s := of(all, m); s.Err == nil {
			t.Errorf("a paused member: %+v", s)
		}
	}
	if s := of(c.Answers(within(t), list.Members), leader); s.Err != nil || s.MemberID == 0 || s.Linearizable {
		t.Errorf("the status of the last of three: %+v", s)
	}
	for _, m := range followers {
		if err := m.Resume(); err != nil {
			t.Fatal(err)
		}
	}
	testbed.Eventually(t, bound, "all serve again", func() bool {
		for _, s := range c.Statuses(within(t), list.Members) {
			if s.Err != nil || !s.Linearizable {
				return false
			}
		}
		return true
	})
}

func TestStatusesOfAMemberShareOneConnection(t *testing.T) {
	t.Parallel()
	var dialled atomic.Int64
	etcd := testbed.StartCluster(t, 1, quick())
	c := connectWith(t, cluster.Options{
		Endpoints: etcd.Endpoints(), CallTimeout: time.Second,
		Dial: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			dialled.Add(1)
			var d net.Dialer
			return d.DialContext(ctx, "tcp", address)
		})},
	})
	list := members(t, c)
	before := dialled.Load()
	for range 5 {
		for _, s := range c.Statuses(within(t), list.Members) {
			if s.Err != nil {
				t.Fatal(s.Err)
			}
		}
	}
	if n := dialled.Load() - before; n != 0 {
		t.Errorf("five statuses took %d more connections", n)
	}
}

func TestAMemberKeepsItsIDWhenItsPeerURLIsUpdated(t *testing.T) {
	t.Parallel()
	etcd := testbed.StartCluster(t, 1, quick())
	c := connect(t, etcd.Endpoints()...)
	voter := members(t, c).Members[0]
	learner, err := c.AddLearner(within(t), "http://127.0.0.9:2380")
	if err != nil {
		t.Fatal(err)
	}
	const url = "http://127.0.0.9:12380"
	for range 2 { // the second call finds nothing to do
		if err := c.UpdateMember(within(t), learner.ID, url); err != nil {
			t.Fatal(err)
		}
		list := members(t, c)
		m, listed := list.Recognize(learner.ID, "http://127.0.0.9:2380")
		if !listed || !slices.Equal(m.PeerURLs, []string{url}) || !m.Learner {
			t.Errorf("recognized %+v, %v", m, listed)
		}
		if m, listed := list.Recognize(1, url); !listed || m.ID != learner.ID {
			t.Errorf("by its URL, recognized %+v, %v", m, listed)
		}
	}
	if err := c.UpdateMember(within(t), learner.ID, voter.PeerURLs[0]); !contains(err, "has the peer URL") {
		t.Errorf("another member's URL: %v", err)
	}
	if err := c.UpdateMember(within(t), 1, "http://127.0.0.9:2380"); !errors.Is(err, cluster.ErrNotListed) {
		t.Errorf("no such member: %v", err)
	}
}
