// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"errors"
	"testing"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/systemd"
)

func TestTheLocalMemberIsHeldAgainstTheSmallestOtherVoterThatTellsItsSize(t *testing.T) {
	t.Parallel()
	members := []cluster.Member{
		{ID: 1, PeerURLs: []string{"http://n1:2380"}},
		{ID: 2, PeerURLs: []string{"http://n2:2380"}},
		{ID: 3, PeerURLs: []string{"http://n3:2380"}},
		{ID: 4, PeerURLs: []string{"http://n4:2380"}},
		{ID: 5, PeerURLs: []string{"http://n5:2380"}, Learner: true},
		{ID: 6, PeerURLs: []string{"http://n6:2380"}},
	}
	told := func(id uint64, size int64) cluster.Status { return cluster.Status{MemberID: id, DBSize: size} }
	r := &round.Round{Unit: systemd.Status{LoadState: "loaded", State: systemd.Active}}
	r.Membership = cluster.Membership{Members: members}
	r.Statuses = map[uint64]cluster.Status{
		1: told(1, 900), 2: told(2, 400), 3: told(3, 300), 4: {Err: errors.New("no answer in time")},
		5: told(5, 10), 6: told(7, 20), // another member answers for it
	}
	own := r.Statuses[1]
	own.Errors = []string{"alarm:NOSPACE"}
	r.Statuses[1] = own
	j := &judge{opt: Options{Config: config.Config{Etcd: config.Etcd{PeerURL: "http://n1:2380"}}}}
	got := j.local(t.Context(), r)
	if got.OwnSize != known(900) || got.SmallestSize != known(300) || got.Alarms != known(1) || len(got.Errors) != 1 {
		t.Errorf("seen is %+v", got)
	}
	r.Statuses = map[uint64]cluster.Status{1: own}
	if got := j.local(t.Context(), r); got.OwnSize != known(900) || got.SmallestSize.Known {
		t.Errorf("alone: %+v", got)
	}
	r.Statuses[1] = cluster.Status{Err: errors.New("no answer in time")}
	if got := j.local(t.Context(), r); got.OwnSize != (health.Figure{}) || got.Alarms.Known {
		t.Errorf("without its status: %+v", got)
	}
}
