// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/sim/keyspace"
)

// fleetEtcd is an etcd with keys, revisions, leases and a member list. It counts the requests of each host. It uses the
// clock of the test's synctest bubble.
type fleetEtcd struct {
	mu      sync.Mutex
	store   *keyspace.Store
	members []cluster.Member
	silent  map[uint64]bool   // members that do not answer
	asked   map[string]*asked // the requests of each host
	cut     bool              // requests get no answer
	lead    uint64            // the leader; the first member if 0
	crawls  map[uint64]bool   // members that, as leader, make every request that needs a quorum too slow
	moved   int               // number of leadership transfers
	nextID  uint64
}

// asked counts a host's requests.
type asked struct {
	requests int // requests of all kinds
	writes   int // puts and deletes that took effect
	records  int // host records read
	takes    int // requests for a lease; the first is for the host record
	statuses int
	locked   int // writes of the lock's key
	renewed  int // lease renewals, which are not writes, because etcd's leader keeps them in memory
}

func newFleetEtcd() *fleetEtcd {
	return &fleetEtcd{store: keyspace.New(), asked: map[string]*asked{}, crawls: map[uint64]bool{}, nextID: 100}
}

func (e *fleetEtcd) of(host string) *fleetClient {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked[host] = &asked{}
	return &fleetClient{e: e, host: host}
}

// count returns each host's counters of requests so far.
func (e *fleetEtcd) count() map[string]asked {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := map[string]asked{}
	for host, n := range e.asked {
		out[host] = *n
	}
	return out
}

// bytes returns the size of all keys and values.
func (e *fleetEtcd) bytes() (sum int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, kv := range e.store.Prefix("") {
		sum += len(kv.Key) + len(kv.Value)
	}
	return sum
}

// get returns the value of a key, or "".
func (e *fleetEtcd) get(key string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.store.Expire()
	if kv := e.store.Get(key); kv != nil {
		return string(kv.Value)
	}
	return ""
}

func (e *fleetEtcd) list() []cluster.Member {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.members)
}

// cutOff makes etcd unreachable for all hosts, or reachable again.
func (e *fleetEtcd) cutOff(yes bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cut = yes
}

// remove removes a member, as an operator does.
func (e *fleetEtcd) remove(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.members = slices.DeleteFunc(slices.Clone(e.members), func(m cluster.Member) bool { return m.Name == name })
}

type fleetClient struct {
	pb.KVClient // nil; fleetTxn implements Txn
	e           *fleetEtcd
	host        string
}

func (c *fleetClient) ask() *asked {
	c.e.store.Expire()
	n := c.e.asked[c.host]
	n.requests++
	return n
}

var errCut = errors.New("no voter answers")

func (e *fleetEtcd) leader() uint64 {
	if e.lead != 0 {
		return e.lead
	}
	return e.members[0].ID
}

// agreed returns true after the call's timeout if the leader is too slow to reach a quorum, and false at once
// otherwise. The caller holds the mutex, which agreed releases while it waits.
func (c *fleetClient) agreed() (late bool) {
	if len(c.e.members) == 0 || !c.e.crawls[c.e.leader()] {
		return false
	}
	c.e.mu.Unlock()
	time.Sleep(2 * time.Second) //nolint:forbidigo // virtual time
	c.e.mu.Lock()
	return true
}

func (c *fleetClient) Members(context.Context) (cluster.Membership, error) {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	if c.ask(); c.e.cut || c.agreed() {
		return cluster.Membership{}, errCut
	}
	return cluster.Membership{ClusterID: 1, Members: slices.Clone(c.e.members)}, nil
}

func (c *fleetClient) AddLearner(_ context.Context, peerURL string) (cluster.Member, error) {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	c.ask()
	c.e.nextID++
	m := cluster.Member{ID: c.e.nextID, PeerURLs: []string{peerURL}, Learner: true}
	c.e.members = append(slices.Clone(c.e.members), m)
	return m, nil
}

// started records that a host's unit has started etcd, which publishes its name.
func (e *fleetEtcd) started(name, peerURL string) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, m := range e.members {
		if slices.Contains(m.PeerURLs, peerURL) {
			e.members[i].Name, e.members[i].ClientURLs = name, []string{"http://" + name}
			return m.ID
		}
	}
	return 0
}

func (c *fleetClient) MoveLeader(_ context.Context, _ string, to uint64) error {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	if c.ask(); !c.e.crawls[c.e.leader()] {
		return errors.New("no voter of the fleet is taken down")
	}
	c.e.lead = to
	c.e.moved++
	return nil
}

func (c *fleetClient) Promote(_ context.Context, id uint64, _ string) error {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	c.ask()
	c.e.members = slices.Clone(c.e.members)
	for i := range c.e.members {
		if c.e.members[i].ID == id {
			c.e.members[i].Learner = false
		}
	}
	return nil
}

func (c *fleetClient) UpdateMember(context.Context, uint64, string) error {
	return errors.New("no host should update a member here")
}

func (c *fleetClient) RemoveLearner(context.Context, uint64) error {
	return errors.New("no host should remove a learner here")
}

func (c *fleetClient) RemoveMember(_ context.Context, id uint64) error {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	c.ask()
	c.e.members = slices.DeleteFunc(slices.Clone(c.e.members), func(m cluster.Member) bool { return m.ID == id })
	return nil
}

func (c *fleetClient) Statuses(ctx context.Context, members []cluster.Member) map[uint64]cluster.Status {
	c.e.mu.Lock()
	late := c.agreed()
	c.e.mu.Unlock()
	out := c.Answers(ctx, members)
	for id, s := range out {
		s.Linearizable = s.Err == nil && !late
		out[id] = s
	}
	return out
}

// Answers returns the members' own statuses.
func (c *fleetClient) Answers(_ context.Context, members []cluster.Member) map[uint64]cluster.Status {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	out := map[uint64]cluster.Status{}
	for _, m := range members {
		n := c.ask()
		n.statuses++
		if m.Name == "" {
			out[m.ID] = cluster.Status{Err: errors.New("it has never started")}
			continue
		}
		if c.e.silent[m.ID] {
			out[m.ID] = cluster.Status{Err: errors.New("it does not answer")}
			continue
		}
		index := uint64(c.e.store.Revision())
		out[m.ID] = cluster.Status{
			MemberID: m.ID, ClusterID: 1, Leader: c.e.leader(), Term: 2, Index: index, Applied: index,
			Learner: m.Learner,
			Version: "3.6.16", DBSize: 1 << 20,
		}
	}
	return out
}

func (c *fleetClient) ClockOffset(context.Context, func() time.Time) (time.Duration, error) {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	c.ask()
	return 0, nil
}

func (c *fleetClient) Known() ([]string, error) { return []string{"http://192.0.2.1:2379"}, nil }

func (c *fleetClient) SetClusterID(uint64) {}

func (c *fleetClient) Diagnose(context.Context, string) error { return nil }

func (c *fleetClient) User() string { return "" }

func (c *fleetClient) Read(ctx context.Context, spans ...cluster.Span) (cluster.Range, error) {
	c.e.mu.Lock()
	late := c.agreed()
	c.e.mu.Unlock()
	if late {
		return cluster.Range{}, errCut
	}
	return c.ReadAt(ctx, "", spans...)
}

// ReadAt returns the content of a member's store.
func (c *fleetClient) ReadAt(_ context.Context, _ string, spans ...cluster.Span) (cluster.Range, error) {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	n := c.ask()
	if c.e.cut {
		return cluster.Range{}, errCut
	}
	out := cluster.Range{Revision: c.e.store.Revision()}
	for _, span := range spans {
		found, err := c.e.store.Range(&pb.RangeRequest{
			Key: []byte(span.Start), RangeEnd: []byte(span.End), CountOnly: span.Count, KeysOnly: span.First,
			Limit: map[bool]int64{true: 1}[span.First],
		})
		if err != nil {
			return cluster.Range{}, err
		}
		if span.Count {
			out.Counted += int(found.Count)
		}
		for _, kv := range found.Kvs {
			key := string(kv.Key)
			if strings.Contains(key, "/hosts/") {
				n.records++
			}
			out.Pairs = append(out.Pairs, cluster.Pair{
				Key: key, Value: kv.Value, CreateRevision: kv.CreateRevision,
				ModRevision: kv.ModRevision, Lease: kv.Lease,
			})
		}
	}
	return out, nil
}

func (c *fleetClient) ReadLast(context.Context, string, int64) (cluster.Range, error) {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	if c.ask(); c.e.cut {
		return cluster.Range{}, errCut
	}
	return cluster.Range{Revision: c.e.store.Revision()}, nil
}

// fleetTxn receives a transaction in the form in which the real client code sends it.
type fleetTxn struct{ *fleetClient }

func (c *fleetClient) Txn(ctx context.Context, conditions []clientv3.Cmp,
	then ...clientv3.Op,
) (*clientv3.TxnResponse, error) {
	return clientv3.NewKVFromKVClient(fleetTxn{c}, nil).Txn(ctx).If(conditions...).Then(then...).Commit()
}

func (t fleetTxn) Txn(_ context.Context, request *pb.TxnRequest, _ ...grpc.CallOption) (*pb.TxnResponse, error) {
	e := t.e
	e.mu.Lock()
	defer e.mu.Unlock()
	n := t.ask()
	if e.cut {
		return nil, errCut
	}
	answer, err := e.store.Txn(request)
	if err != nil || !answer.Succeeded {
		return answer, err
	}
	n.writes += len(request.Success)
	for _, op := range request.Success {
		if strings.HasSuffix(string(op.GetRequestPut().GetKey()), "/lock") {
			n.locked++
		}
	}
	if t.agreed() { // it has taken effect nevertheless
		return nil, errCut
	}
	return answer, nil
}

func (c *fleetClient) Grant(_ context.Context, ttl int64) (clientv3.LeaseID, int64, error) {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	if c.ask().takes++; c.e.cut {
		return 0, 0, errCut
	}
	id := clientv3.LeaseID(c.e.store.Grant(time.Duration(ttl) * time.Second).ID)
	return id, ttl, nil
}

func (c *fleetClient) KeepAliveOnce(_ context.Context, id clientv3.LeaseID) (int64, error) {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	c.ask().renewed++
	if c.e.cut {
		return 0, errCut
	}
	l, err := c.e.store.Renew(int64(id))
	if err != nil {
		return 0, rpctypes.Error(err)
	}
	return int64(l.TTL / time.Second), nil
}

func (c *fleetClient) Revoke(_ context.Context, id clientv3.LeaseID) error {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	if c.ask(); c.e.cut {
		return errCut
	}
	_, err := c.e.store.Revoke(int64(id))
	return rpctypes.Error(err)
}
