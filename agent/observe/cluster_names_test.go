// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestReadsOtherClusterNamesWhileNoMemberUsesOurs runs against a real etcd.
func TestReadsOtherClusterNamesWhileNoMemberUsesOurs(t *testing.T) {
	t.Parallel()
	client, err := cluster.New(cluster.Options{
		Endpoints:   testbed.StartCluster(t, 1, testbed.ClusterOptions{}).Endpoints(),
		CallTimeout: 10 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	puts := []clientv3.Op{
		clientv3.OpPut(record.KeysFor("prod").Host("n1"), "{}"),
		clientv3.OpPut(record.KeysFor("abandoned").Pause(), "{}"), // not a host
		clientv3.OpPut(record.KeysFor("ours").Host("self"), "{}"),
		clientv3.OpPut("/quorumd/no-slash", "{}"), // no record of a cluster
		clientv3.OpPut("/quorumd/\xff\xff/hosts/n1", "{}"),
	}
	for i := range 20 { // more than are read
		puts = append(puts, clientv3.OpPut(record.KeysFor(fmt.Sprintf("z%02d", i)).Host("n1"), "{}"))
	}
	if _, err := client.Txn(t.Context(), nil, puts...); err != nil {
		t.Fatal(err)
	}
	o := &Observer{}
	o.opt.Etcd = client
	o.opt.Config.Cluster.Name, o.opt.Config.Host.ID = "ours", "self"
	o.opt.Config.Timing.CallTimeout = time.Minute
	r := &round.Round{At: time.Hour}
	r.HostsAt = r.At
	o.askNames(t.Context(), r)
	before := []string{"prod", "z00", "z01", "z02", "z03"} // with abandoned, no-slash and ours, the first eight
	if want := before; !slices.Equal(r.OtherNames, want) {
		t.Errorf("the names are %q, want %q", r.OtherNames, want)
	}
	if text := policy.Conflict(policy.View{Cluster: policy.Cluster{OtherNames: r.OtherNames}}); text == "" {
		t.Error("a host with another cluster name is not a conflict")
	}
	if _, err := client.Txn(t.Context(), nil,
		clientv3.OpDelete("/quorumd/no-slash"), clientv3.OpDelete(record.KeysFor("prod").Host("n1"))); err != nil {
		t.Fatal(err)
	}
	r = &round.Round{At: time.Hour + namesEvery/2}
	r.HostsAt = r.At
	if o.askNames(t.Context(), r); !slices.Equal(r.OtherNames, before) {
		t.Errorf("read again after half of the interval: %q", r.OtherNames)
	}
	r = &round.Round{At: time.Hour + namesEvery}
	r.HostsAt = r.At
	if o.askNames(t.Context(), r); len(r.OtherNames) == 0 || len(r.OtherNames) > mostNames || r.OtherNames[0] != "z00" {
		t.Errorf("more names than are read: %q", r.OtherNames)
	}
	r = &round.Round{At: time.Hour + 2*namesEvery}
	r.Hosts = []record.Host{{ID: "n2", PeerURL: "http://n2:2380"}}
	r.Membership.Members = []cluster.Member{{PeerURLs: []string{"http://n2:2380"}}}
	if o.askNames(t.Context(), r); r.OtherNames != nil {
		t.Errorf("read although another member uses our name: %q", r.OtherNames)
	}
}

// slowNames is an etcd whose reads are slow or refused.
type slowNames struct {
	cluster.Etcd
	takes time.Duration
	err   error
}

func (e slowNames) Read(ctx context.Context, _ ...cluster.Span) (cluster.Range, error) {
	select {
	case <-time.After(e.takes):
	case <-ctx.Done():
		return cluster.Range{}, ctx.Err()
	}
	key := record.KeysFor("prod").Host("n1")
	return cluster.Range{Pairs: []cluster.Pair{{Key: key}}}, e.err
}

func TestSlowNameReadsDelayTheLoopByOneCallAtMost(t *testing.T) {
	t.Parallel()
	known := []string{"events"}
	for name, c := range map[string]struct {
		etcd slowNames
		want []string
	}{
		"slow reads":      {slowNames{takes: 700 * time.Millisecond}, []string{"prod"}},
		"it hangs":        {slowNames{takes: time.Hour}, known},
		"it fails":        {slowNames{err: errors.New("no leader")}, known},
		"roles forbid it": {slowNames{err: cluster.ErrRefused}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := &Observer{otherNames: known}
				o.opt.Etcd = c.etcd
				o.opt.Config.Timing.CallTimeout = 2 * time.Second
				r := &round.Round{At: time.Hour}
				r.HostsAt = r.At
				began := time.Now()
				o.askNames(t.Context(), r)
				took := time.Since(began)
				if took > o.opt.Config.Timing.CallTimeout || !slices.Equal(r.OtherNames, c.want) {
					t.Errorf("%q after %s, want %q", r.OtherNames, took, c.want)
				}
			})
		})
	}
}
