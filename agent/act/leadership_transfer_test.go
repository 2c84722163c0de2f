// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// leading is an etcd that records the requests to transfer leadership.
type leading struct {
	cluster.Etcd
	url string
	to  uint64
	err error
}

func (l *leading) MoveLeader(_ context.Context, url string, to uint64) error {
	l.url, l.to = url, to
	return l.err
}

func TestLeaderIsAskedToTransferLeadershipAndEachAttemptCounts(t *testing.T) {
	t.Parallel()
	opt := options(t, hoststate.HostFiles{})
	etcd := &leading{}
	opt.Etcd, opt.Config.Etcd.PeerURL = etcd, "http://n2"
	a := New(opt)
	r := decided(policy.StepLeaderStepsDown, nil)
	r.Op, r.Decision.Step.MemberID = nil, 3
	r.View.Limits.TransferInterval = time.Minute
	if done, _ := a.Act(t.Context(), r); done.Err == nil || etcd.to != 0 {
		t.Errorf("a host without a member has asked: %+v", done)
	}
	r.Membership.Members = []cluster.Member{
		{ID: 2, PeerURLs: []string{"http://n2"}, ClientURLs: []string{"http://c2"}},
		{ID: 3, PeerURLs: []string{"http://n3"}, ClientURLs: []string{"http://c3"}},
	}
	for n, err := range []error{nil, errors.New("no")} {
		if n == 1 { // the cluster state was read only from this host's own member
			r.Led, r.Membership = &round.ClusterState{Membership: r.Membership}, cluster.Membership{}
		}
		etcd.err = err
		r.View.LeadershipTransfers = policy.LeadershipTransfers{
			InRow:   a.Did().SteppedDownInRow,
			LastFor: a.Did().SteppedDown.Age(testNow),
		}
		if done, _ := a.Act(t.Context(), r); !errors.Is(done.Err, err) || etcd.url != "http://c2" || etcd.to != 3 {
			t.Errorf("%q was asked to transfer the leadership to %d: %+v", etcd.url, etcd.to, done)
		}
		if d := a.Did(); d.SteppedDownInRow != n+2 || d.SteppedDown.Age(testNow) != 0 {
			t.Errorf("after attempt %d Did returns %+v, %d in a row", n+2, d.SteppedDown, d.SteppedDownInRow)
		}
	}
}
