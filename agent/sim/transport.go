// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"io"
	"path"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The errors that gRPC returns for calls that reach no etcd.
var (
	errTimeout = status.FromContextError(context.DeadlineExceeded).Err()
	errRefused = status.Error(codes.Unavailable, "connection error: connect: connection refused")
)

// call is an RPC to etcd.
type call struct {
	name         string
	lane         lane
	write        bool // the request goes through Raft, and may be applied late
	serializable bool // the request reads the queried member's own data
	// check runs on the queried member on receipt and may be nil. apply runs when a write is committed or a read is
	// served.
	check func(m *member) error
	apply func(m *member) error
}

// unary intercepts unary RPCs, and simulates them.
func (c *client) unary(ctx context.Context, _ string, req, reply any, conn *grpc.ClientConn, _ grpc.UnaryInvoker,
	_ ...grpc.CallOption,
) error {
	return c.send(ctx, c.host(conn), c.call(ctx, req, reply))
}

// stream intercepts streams. The agent opens only streams that renew a lease once.
func (c *client) stream(ctx context.Context, _ *grpc.StreamDesc, conn *grpc.ClientConn, _ string, _ grpc.Streamer,
	_ ...grpc.CallOption,
) (grpc.ClientStream, error) {
	return &leaseRenewal{ctx: ctx, c: c, to: c.host(conn)}, nil
}

// host returns the host that a connection leads to.
func (c *client) host(conn *grpc.ClientConn) *host {
	return c.p.host.world.hostByClientURL("http://" + path.Base(conn.Target()))
}

// hostByClientURL returns the host with that client URL.
func (w *world) hostByClientURL(clientURL string) *host {
	return w.hosts[slices.IndexFunc(w.hosts, func(h *host) bool { return h.clientURL() == clientURL })]
}

// leaseRenewal is a stream that renews a lease once.
type leaseRenewal struct {
	grpc.ClientStream
	ctx context.Context
	c   *client
	to  *host
	id  int64

	ended bool // the client has ended the stream
}

// CloseSend ends the stream.
func (r *leaseRenewal) CloseSend() error {
	r.ended = true
	return nil
}

// SendMsg accepts the request.
func (r *leaseRenewal) SendMsg(m any) error {
	r.id = m.(*pb.LeaseKeepAliveRequest).ID
	return nil
}

// RecvMsg sends the request and returns the answer. After CloseSend, it does not wait for the member to end the stream,
// because no caller depends on that.
func (r *leaseRenewal) RecvMsg(m any) error {
	if r.ended {
		return io.EOF
	}
	out := m.(*pb.LeaseKeepAliveResponse)
	return r.c.send(r.ctx, r.to, call{name: "keepalive", lane: laneLoop, apply: func(m *member) error {
		if l, err := m.etcd.store.Renew(r.id); err == nil { // for an expired lease etcd returns a TTL of 0
			out.TTL = int64(l.TTL / time.Second)
		}
		return nil
	}})
}

// call returns the call for a request.
func (c *client) call(ctx context.Context, req, reply any) call {
	w := c.p.host.world
	switch req := req.(type) {
	case *pb.RangeRequest:
		return call{name: "read", lane: c.lane(ctx), serializable: req.Serializable, apply: func(m *member) error {
			found, err := m.etcd.store.Range(req)
			if err == nil {
				out := reply.(*pb.RangeResponse)
				out.Header, out.Kvs, out.More, out.Count = found.Header, found.Kvs, found.More, found.Count
			}
			return err
		}}
	case *pb.TxnRequest:
		return c.txn(req, reply.(*pb.TxnResponse))
	case *pb.LeaseGrantRequest:
		return call{name: "grant", lane: laneStep, write: true, apply: func(m *member) error {
			l := m.etcd.store.Grant(time.Duration(req.TTL) * time.Second)
			w.after(l.TTL, laneEtcd, func() { m.etcd.expire(l.ID) })
			out := reply.(*pb.LeaseGrantResponse)
			out.ID, out.TTL = l.ID, req.TTL
			return nil
		}}
	case *pb.LeaseRevokeRequest:
		return call{name: "revoke", lane: laneStep, write: true, apply: func(m *member) error {
			_, err := m.etcd.store.Revoke(req.ID)
			return err
		}}
	}
	return c.membership(ctx, req, reply)
}

func (c *client) txn(req *pb.TxnRequest, out *pb.TxnResponse) call {
	w := c.p.host.world
	do := call{name: "write", lane: laneStep, write: true}
	switch {
	case len(req.Success) == 0:
		do.name, do.write = "confirm", false
	case req.Success[0].GetRequestRange() != nil:
		do = call{name: "read", lane: laneLoop, serializable: req.Success[0].GetRequestRange().GetSerializable()}
	}
	do.apply = func(m *member) error {
		if w.mistake.ignoresConditions {
			req.Compare = nil
		}
		if m.etcd == w.etcd {
			w.promises.beforeTxn(c.p, req)
		}
		answer, err := m.etcd.store.Txn(req)
		if err != nil {
			return err
		}
		if answer.Succeeded && slices.ContainsFunc(req.Success, func(op *pb.RequestOp) bool {
			return string(op.GetRequestPut().GetKey()) == w.keys.Lock()
		}) {
			m.etcd.lockWriter = c.p
		}
		out.Header, out.Succeeded, out.Responses = answer.Header, answer.Succeeded, answer.Responses
		return nil
	}
	return do
}

// send carries a request to one host's etcd and its answer back.
func (c *client) send(ctx context.Context, to *host, do call) error {
	p, w := c.p, c.p.host.world
	l := p.host.lane(do.lane)
	deadline, _ := ctx.Deadline() // the client sets a deadline for every call
	bound := deadline.Sub(w.began)
	p.gateWithTrap(do.lane, do.name, true)
	w.mu.Lock()
	w.counts.Calls++
	there := w.travelTime(p.host, to, do)
	// A request that timed out while the agent was frozen may still be sent. Its bytes may already have been written,
	// or the agent was frozen between checking the clock and writing.
	if w.now() > bound && chance(w.draw(uint64(l), 20), 50) {
		w.mu.Unlock()
		return errTimeout
	}
	w.mu.Unlock()
	arrives := w.moment(there, l)
	w.wait(arrives)
	w.mu.Lock()
	answer, back := c.deliver(to, do)
	w.mu.Unlock()
	gaveUp := w.moment(bound+timeoutDelay(w, l)-w.now(), l)
	if !answer.ok || w.now()+back > gaveUp {
		w.wait(max(gaveUp, w.moment(0, l)))
		p.gateWithTrap(do.lane, do.name, false)
		return errTimeout
	}
	if back > 0 {
		w.wait(w.moment(back, l))
	}
	p.gateWithTrap(do.lane, do.name, false)
	return answer.err
}

// timeoutDelay returns how long after its deadline a call returns.
func timeoutDelay(w *world, l lane) time.Duration {
	return between(w.draw(uint64(l), 21), 10*time.Microsecond, 500*time.Microsecond)
}

// travelTime returns how long a request takes to arrive.
func (w *world) travelTime(h, to *host, do call) time.Duration {
	about := func(n uint64) uint64 { return w.draw(uint64(h.index), uint64(to.index), uint64(len(do.name)), n) }
	d := between(about(22), 200*time.Microsecond, 3*time.Millisecond)
	if slow := time.Duration(h.maxDelay.Load()); slow > 0 {
		d += between(about(23), 0, slow)
	}
	return d
}

// answer is a member's answer. ok is false if no answer arrives.
type answer struct {
	err error
	ok  bool
}

// deliver delivers a request. back is how long the answer takes to arrive.
func (c *client) deliver(to *host, do call) (a answer, back time.Duration) {
	w, from := c.p.host.world, c.p.host
	if !w.carries(from, to) {
		return answer{}, 0
	}
	connected := w.carries(to, from)
	if !to.unit.running {
		return answer{errRefused, connected}, 0
	}
	m := to.etcd().find(to.data.member)
	if m == nil || !to.unit.ready() || to.disk.hangs() {
		return answer{}, 0
	}
	if m.learner {
		return answer{rpctypes.ErrGRPCNotSupportedForLearner, connected}, 0
	}
	if do.check != nil && m.etcd.canCommit(m) {
		if err := do.check(m); err != nil {
			return answer{err, connected}, 0
		}
	}
	drawn := w.draw(uint64(from.index), uint64(to.index), uint64(len(do.name)), 24)
	late := do.needsQuorum() && m.etcd.leaderTooSlow()
	if do.write && (late || chance(drawn, from.latePercent) || !m.etcd.canCommit(m)) {
		return c.applyLate(m, do, drawn), 0
	}
	if !m.etcd.canCommit(m) || late && !do.serializable {
		return answer{}, 0
	}
	m.etcd.index += do.entries()
	err := do.apply(m)
	w.promises.afterApply()
	lost := chance(drawn>>8, from.lossPercent) || (do.name == "keepalive" && from.dropsKeepalives)
	return answer{err, connected && !lost}, c.answerDelay(drawn)
}

// needsQuorum reports whether a request waits for a quorum, and thus for the leader's disk. The caller must except
// serializable reads, which wait for neither.
func (d call) needsQuorum() bool {
	return d.write && d.name != "move leader" || slices.Contains([]string{"read", "members", "confirm"}, d.name)
}

// entries returns the number of entries that the request appends to the log.
func (d call) entries() uint64 {
	if d.write {
		return 1
	}
	return 0
}

// answerDelay returns how long an answer takes in addition to travelTime, which covers both directions of a fast
// network.
func (c *client) answerDelay(drawn uint64) time.Duration {
	slow := time.Duration(c.p.host.maxDelay.Load())
	if slow == 0 {
		return 0
	}
	return between(drawn, 0, slow)
}

// applyLate applies a write seconds or minutes later, and its caller gets no answer. etcd, too, keeps a proposal until
// it is committed or the leader changes.
func (c *client) applyLate(m *member, do call, drawn uint64) answer {
	w := c.p.host.world
	term := m.etcd.term
	after := between(drawn, 2*time.Second, 30*time.Second)
	if chance(drawn>>16, 20) {
		after = between(drawn, 30*time.Second, 10*time.Minute)
	}
	w.event(c.p.host, eventCall, uint64(after), "%s is delayed for %s", do.name, after.Round(time.Millisecond))
	w.after(after, laneLate, func() {
		if m.etcd.term != term || !m.etcd.hasLeader() {
			return // the proposal was lost with its leader
		}
		m.etcd.index += do.entries()
		w.promises.applyingLate = true
		err := do.apply(m)
		w.promises.afterApply()
		w.promises.applyingLate = false
		w.event(c.p.host, eventCall, 2, "%s is applied late: %v", do.name, err)
	})
	return answer{}
}

// txnRequest returns the request that the etcd client would send for the operations.
func txnRequest(ops []clientv3.Op) *pb.TxnRequest {
	var sent requestRecorder
	// the recorder always returns an error
	_, _ = clientv3.NewKVFromKVClient(&sent, nil).Txn(context.Background()).Then(ops...).Commit()
	return sent.txn
}

// requestRecorder records a request instead of sending it.
type requestRecorder struct {
	pb.KVClient
	txn *pb.TxnRequest
}

// Txn records the transaction.
func (k *requestRecorder) Txn(_ context.Context, in *pb.TxnRequest, _ ...grpc.CallOption) (*pb.TxnResponse, error) {
	k.txn = in
	return nil, errTimeout
}
