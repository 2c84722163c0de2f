// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"log/slog"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/contrib/testbed"
)

func TestAMemberServesTheOldClusterOnlyWithItsQuorum(t *testing.T) {
	t.Parallel()
	etcd := testbed.StartCluster(t, 3, testbed.ClusterOptions{})
	list, err := etcd.Client(t).MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	own := etcd.Members[0]
	client, err := cluster.New(cluster.Options{
		Endpoints: etcd.Endpoints(), CallTimeout: 2 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	o := &Observer{opt: Options{Etcd: client}}
	o.opt.Config.Etcd.ClientURL = own.Options.ClientURL
	serves := func(old uint64) bool {
		return o.oldServes(t.Context(), &round.Round{ClusterState: round.ClusterState{
			Recovered: &record.Recovered{Old: record.MemberID(old), New: 1},
		}})
	}
	if !serves(list.Header.ClusterId) || serves(list.Header.ClusterId+1) {
		t.Error("the member has a quorum of the old cluster")
	}
	for _, m := range etcd.Members[1:] {
		if err := m.Kill9(); err != nil {
			t.Fatal(err)
		}
	}
	if serves(list.Header.ClusterId) {
		t.Error("the member has no quorum")
	}
	if err := own.Kill9(); err != nil {
		t.Fatal(err)
	}
	if serves(list.Header.ClusterId) {
		t.Error("the member is down")
	}
}
