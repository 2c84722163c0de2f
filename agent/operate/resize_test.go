// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/publish"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// sizeStore is an etcd with the record of the size and a number of host records.
type sizeStore struct {
	cluster.Etcd

	value    string
	at       int64
	hosts    int
	err      error
	between  func() // called between a read and the next write
	puts     []string
	compared int64
}

func (s *sizeStore) User() string { return "" }

func (s *sizeStore) Read(_ context.Context, spans ...cluster.Span) (cluster.Range, error) {
	found := cluster.Range{Revision: s.at, Counted: s.hosts}
	if len(spans) == 2 && s.value != "" {
		found.Pairs = []cluster.Pair{{Key: spans[0].Start, Value: []byte(s.value), ModRevision: s.at}}
	}
	return found, s.err
}

func (s *sizeStore) Txn(_ context.Context, conditions []clientv3.Cmp,
	then ...clientv3.Op,
) (*clientv3.TxnResponse, error) {
	if len(conditions) == 0 { // the history
		return &clientv3.TxnResponse{Succeeded: true, Header: &pb.ResponseHeader{Revision: s.at}}, nil
	}
	if s.between != nil {
		s.between()
	}
	if s.err != nil {
		return nil, s.err
	}
	if s.compared = conditions[0].GetCompare().GetModRevision(); s.compared != s.at {
		return &clientv3.TxnResponse{Header: &pb.ResponseHeader{Revision: s.at}}, nil
	}
	s.at++
	s.value = string(then[0].ValueBytes())
	s.puts = append(s.puts, s.value)
	return &clientv3.TxnResponse{Succeeded: true, Header: &pb.ResponseHeader{Revision: s.at}}, nil
}

// threeVoters returns the round of a spare in a cluster of three voters.
func threeVoters() *round.Round {
	v := policy.View{
		Self:    policy.Self{Mode: policy.Manage, ID: "h4", PeerURL: "http://h4"},
		Target:  policy.Target{Voters: 3, Configured: 3},
		Cluster: policy.Cluster{Reachable: true, Listed: true, Fresh: true, ID: 7},
	}
	for i, name := range []string{"h1", "h2", "h3"} {
		v.Cluster.Members = append(v.Cluster.Members, policy.Member{
			ID: uint64(i + 1), Name: name, PeerURL: "http://" + name, Live: true,
		})
		v.Hosts = append(v.Hosts, policy.Host{
			ID: name, Name: name, PeerURL: "http://" + name, Role: policy.RoleVoter, Manage: true,
		})
	}
	v.Hosts = append(v.Hosts, policy.Host{
		ID: "h4", Name: "h4", PeerURL: "http://h4", Role: policy.RoleSpare, Manage: true,
	})
	return &round.Round{View: v, ClusterState: round.ClusterState{Reachable: true, Listed: true}}
}

func resizingHost(t *testing.T, store *sizeStore) *host {
	t.Helper()
	h := newHost(t)
	h.keys = record.KeysFor("test")
	h.publisher = publish.New(publish.Options{Config: h.opt.Config, Etcd: store, Wall: time.Now, Logger: h.opt.Logger},
		h.keys, h.files)
	h.opt.Etcd, h.opt.Rounds, h.opt.History = store, h.publisher, h.publisher.Journal()
	h.publisher.Show(threeVoters())
	return h
}

func TestAResizeComparesTheRecordThatItHasRead(t *testing.T) {
	t.Parallel()
	store := &sizeStore{hosts: 4, at: 11, value: `{"version":1,"voters":3,"by":"ann","later":{"x":1}}`}
	h := resizingHost(t, store)
	got, err := h.Resize(t.Context(), control.ResizeRequest{Voters: 1, WithoutSnapshot: true, Reason: "moving"}, "root")
	if err != nil || got.Revision != 12 || store.compared != 11 || len(store.puts) != 1 || h.woken != 1 {
		t.Fatalf("%+v, %v; compared with %d; wrote %q; woken %d times", got, err, store.compared, store.puts, h.woken)
	}
	if !strings.Contains(store.value, `"later":{"x":1}`) {
		t.Errorf("the field of a newer agent was dropped: %s", store.value)
	}
	store.between = func() { store.at = 20 }
	got, err = h.Resize(t.Context(), control.ResizeRequest{Voters: 3}, "root")
	if e, is := errors.AsType[*control.Error](err); !is || e.Kind != control.Conflicts || len(store.puts) != 1 ||
		!strings.Contains(e.Message, "cannot resize the cluster to 3: the record has changed in the meantime") {
		t.Errorf("another operator was faster: %+v, %v; wrote %q", got, err, store.puts)
	}
}

func TestAResizeIsRefusedIfTheHostsAreNotKnownOrEtcdFails(t *testing.T) {
	t.Parallel()
	store := &sizeStore{hosts: 300}
	h := resizingHost(t, store)
	if _, err := h.Resize(t.Context(), control.ResizeRequest{Voters: 1, WithoutSnapshot: true, DryRun: true},
		"root"); err != nil {
		t.Errorf("on a host that reads all host records: %v", err)
	}
	r := threeVoters()
	r.View.Resting = true
	h.publisher.Show(r)
	_, err := h.Resize(t.Context(), control.ResizeRequest{Voters: 1, WithoutSnapshot: true}, "root")
	if e, is := errors.AsType[*control.Error](err); !is || e.Kind != control.NotNow ||
		e.Hint != "run the command on a voter: h1, h2, h3" {
		t.Errorf("on a resting host: %v", err)
	}
	store.hosts = 4
	store.err = context.DeadlineExceeded
	_, err = h.Resize(t.Context(), control.ResizeRequest{Voters: 1, WithoutSnapshot: true}, "root")
	if e, is := errors.AsType[*control.Error](err); !is || e.Kind != control.NotNow || e.Hint == "" {
		t.Errorf("without an answer of etcd: %v", err)
	}
	if len(store.puts) > 0 {
		t.Errorf("wrote %q", store.puts)
	}
}

// Packages record and policy must agree on the sizes that a cluster may have, although record does not import policy.
func TestTheSizesOfARecordAreThoseOfThePolicy(t *testing.T) {
	t.Parallel()
	for voters := -2; voters <= 2*policy.MaxVoters; voters++ {
		_, err := record.Encode(record.Size{Voters: voters})
		if valid := policy.IsSize(voters); valid != (err == nil) {
			t.Errorf("%d voters: the policy accepts them: %t; the record: %v", voters, valid, err)
		}
	}
}
