// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
)

// client is one agent's way to etcd. It asks whom the real client, package agent/cluster, would
// ask, in the same order and with the same bounds.
type client struct {
	p      *process
	voters []*host // as last listed
	last   *host
	failed map[*host]int
	count  int
}

func newClient(p *process) *client { return &client{p: p, failed: map[*host]int{}} }

// endpoints lists whom to ask: the one that answered last, those that have not failed, the others.
func (c *client) endpoints() []*host {
	list := slices.Clone(c.voters)
	if len(list) == 0 {
		list = slices.Clone(c.p.host.world.hosts)
	}
	turn := func(h *host) int {
		if h == c.last {
			return -1
		}
		return c.failed[h]
	}
	slices.SortStableFunc(list, func(a, b *host) int { return cmp.Compare(turn(a), turn(b)) })
	return list
}

func (c *client) note(h *host, answered bool) {
	if answered {
		c.last = h
		delete(c.failed, h)
		return
	}
	if c.last == h {
		c.last = nil
	}
	c.count++
	c.failed[h] = c.count
}

// Errors of the way to etcd.
var (
	errTimeout = fmt.Errorf("no answer: %w", context.DeadlineExceeded)
	errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
)

// call describes a call.
type call struct {
	name  string
	lane  lane
	write bool // it is proposed to raft: it may be applied late
	// check is what the member that is asked checks first, apply what is committed.
	check func(m *member) error
	apply func(m *member) error
}

// refused tells whether an error is the cluster's own word.
func refused(err error) bool {
	return err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, syscall.ECONNREFUSED) &&
		!errors.Is(err, rpctypes.ErrUnhealthy)
}

// ask goes from endpoint to endpoint until one answers.
func (c *client) ask(ctx context.Context, do call) error {
	w := c.p.host.world
	w.mu.Lock()
	list := c.endpoints()
	w.mu.Unlock()
	var last error
	for _, h := range list {
		err := c.once(ctx, h, do)
		w.mu.Lock()
		c.note(h, err == nil || refused(err))
		w.mu.Unlock()
		if err == nil || refused(err) {
			return err
		}
		last = err
		if ctx.Err() != nil {
			break
		}
	}
	w.mu.Lock()
	c.voters = nil
	w.mu.Unlock()
	return fmt.Errorf("%w: %w", cluster.ErrUnreachable, last)
}

// tell asks one endpoint, once.
func (c *client) tell(ctx context.Context, do call) error {
	w := c.p.host.world
	w.mu.Lock()
	list := c.endpoints()
	w.mu.Unlock()
	err := c.once(ctx, list[0], do)
	w.mu.Lock()
	c.note(list[0], err == nil || refused(err))
	w.mu.Unlock()
	return err
}

// once carries a request to one host's etcd and its answer back.
func (c *client) once(ctx context.Context, to *host, do call) error {
	p, w := c.p, c.p.host.world
	l := p.host.lane(do.lane)
	bound := w.now() + p.host.config.Timing.CallTimeout
	if deadline, ok := ctx.Deadline(); ok {
		bound = min(bound, deadline.Sub(w.began))
	}
	p.pass(do.lane, do.name, true)
	w.mu.Lock()
	w.counts.Calls++
	there := w.travel(p.host, do)
	// One whose time was over while the agent was frozen may still leave: the bytes were written, or
	// it was frozen between its look at the clock and the write.
	if w.now() > bound && chance(w.draw(uint64(l), 20), 50) {
		w.mu.Unlock()
		return errTimeout
	}
	w.mu.Unlock()
	arrives := w.moment(there, l)
	w.wait(arrives)
	w.mu.Lock()
	answer, back := c.arrive(to, do)
	w.mu.Unlock()
	gives := w.moment(bound+give(w, l)-w.now(), l)
	if !answer.ok || w.now()+back > gives {
		w.wait(max(gives, w.moment(0, l)))
		p.pass(do.lane, do.name, false)
		return errTimeout
	}
	if back > 0 {
		w.wait(w.moment(back, l))
	}
	p.pass(do.lane, do.name, false)
	return answer.err
}

// give is how late a client notices that its time is over.
func give(w *world, l lane) time.Duration {
	return between(w.draw(uint64(l), 21), 10*time.Microsecond, 500*time.Microsecond)
}

// travel is how long a request is on its way.
func (w *world) travel(h *host, do call) time.Duration {
	d := between(w.draw(uint64(h.index), uint64(len(do.name)), 22), 200*time.Microsecond, 3*time.Millisecond)
	if slow := time.Duration(h.slow.Load()); slow > 0 {
		d += between(w.draw(uint64(h.index), uint64(len(do.name)), 23), 0, slow)
	}
	return d
}

// answer is a member's word; the zero value is silence.
type answer struct {
	err error
	ok  bool
}

// arrive lets a request arrive. back is how long the answer takes.
func (c *client) arrive(to *host, do call) (a answer, back time.Duration) {
	w, from := c.p.host.world, c.p.host
	if !w.carries(from, to) {
		return answer{}, 0
	}
	heard := w.carries(to, from)
	if !to.unit.process {
		return answer{errRefused, heard}, 0
	}
	m := w.etcd.find(to.data.member)
	if m == nil || !to.unit.ready() || to.disk.hangs() || m.learner {
		return answer{}, 0 // also a learner refuses, which is as good as silence
	}
	if do.check != nil && w.etcd.reaches(m) {
		if err := do.check(m); err != nil {
			return answer{err, heard}, 0
		}
	}
	drawn := w.draw(uint64(from.index), uint64(len(do.name)), 24)
	if do.write && (chance(drawn, from.late) || !w.etcd.reaches(m)) {
		return c.later(m, do, drawn), 0
	}
	if !w.etcd.reaches(m) {
		return answer{}, 0
	}
	w.etcd.index += do.entries()
	err := do.apply(m)
	w.promises.afterEffect()
	lost := chance(drawn>>8, from.lossy) || (do.name == "keepalive" && from.mute)
	return answer{err, heard && !lost}, c.back(drawn)
}

func (d call) entries() uint64 {
	if d.write {
		return 1
	}
	return 0
}

// back is how long an answer is on its way, beyond what the request's way counts for both.
func (c *client) back(drawn uint64) time.Duration {
	slow := time.Duration(c.p.host.slow.Load())
	if slow == 0 {
		return 0
	}
	return between(drawn, 0, slow)
}

// later lets a write be applied after its caller has given up: etcd holds it until it can be
// committed, unless its leader changes meanwhile.
func (c *client) later(m *member, do call, drawn uint64) answer {
	w := c.p.host.world
	term := w.etcd.term
	after := between(drawn, 2*time.Second, 30*time.Second)
	if chance(drawn>>16, 20) {
		after = between(drawn, 30*time.Second, 10*time.Minute)
	}
	w.happen(c.p.host, happenedCall, uint64(after), "%s is held up for %s", do.name, after.Round(time.Millisecond))
	w.after(after, laneLate, func() {
		if w.etcd.term != term || !w.etcd.leads() {
			return // the leader that had it is gone
		}
		w.etcd.index += do.entries()
		w.promises.late = true
		err := do.apply(m)
		w.promises.afterEffect()
		w.promises.late = false
		w.happen(c.p.host, happenedCall, 2, "%s is applied late: %v", do.name, err)
	})
	return answer{}
}

// Txn commits if all conditions hold.
func (c *client) Txn(ctx context.Context, conditions []clientv3.Cmp,
	then ...clientv3.Op,
) (*clientv3.TxnResponse, error) {
	req := request(conditions, then)
	name := "write"
	if len(then) == 0 {
		name = "confirm"
	}
	var out *clientv3.TxnResponse
	w := c.p.host.world
	err := c.tell(ctx, call{name: name, lane: laneStep, write: len(then) > 0, apply: func(*member) (err error) {
		if w.mistake.unfenced {
			req.Compare = nil
		}
		w.promises.beforeTxn(c.p, req)
		out, err = w.etcd.store.txn(req, c.p)
		return err
	}})
	if err != nil {
		return nil, err // and out is not looked at: it may still be written
	}
	return out, nil
}

// Grant makes a lease.
func (c *client) Grant(ctx context.Context, ttl int64) (clientv3.LeaseID, int64, error) {
	var id int64
	w := c.p.host.world
	err := c.tell(ctx, call{name: "grant", lane: laneStep, write: true, apply: func(*member) error {
		l := w.etcd.store.grant(time.Duration(ttl)*time.Second, w.now())
		id = l.id
		w.after(l.ttl, laneEtcd, func() { w.etcd.expire(l.id) })
		return nil
	}})
	if err != nil {
		return 0, 0, err
	}
	return clientv3.LeaseID(id), ttl, nil
}

// KeepAliveOnce renews a lease.
func (c *client) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (int64, error) {
	var ttl int64
	w := c.p.host.world
	err := c.ask(ctx, call{name: "keepalive", lane: laneLoop, apply: func(*member) error {
		l := w.etcd.store.leases[int64(id)]
		if l == nil || l.ends <= w.now() {
			return rpctypes.ErrLeaseNotFound
		}
		l.ends = w.now() + l.ttl
		ttl = int64(l.ttl / time.Second)
		return nil
	}})
	return ttl, err
}

// Revoke ends a lease.
func (c *client) Revoke(ctx context.Context, id clientv3.LeaseID) error {
	w := c.p.host.world
	return c.ask(ctx, call{name: "revoke", lane: laneStep, write: true, apply: func(*member) error {
		_, err := w.etcd.store.revoke(int64(id))
		return err
	}})
}

// Read gives the pairs of some spans, as of one revision.
func (c *client) Read(ctx context.Context, spans ...cluster.Span) (cluster.Range, error) {
	var out cluster.Range
	w := c.p.host.world
	err := c.ask(ctx, call{name: "read", lane: laneLoop, apply: func(*member) error {
		out = w.etcd.store.read(spans...)
		return nil
	}})
	return out, err
}

// ReadLast gives the last pairs of a prefix.
func (c *client) ReadLast(ctx context.Context, prefix string, limit int64) (cluster.Range, error) {
	var out cluster.Range
	w := c.p.host.world
	err := c.ask(ctx, call{name: "read last", lane: laneStep, apply: func(*member) error {
		out = w.etcd.store.readLast(prefix, limit)
		return nil
	}})
	return out, err
}

// Who gives nobody: the simulated etcd lets everybody do everything.
func (c *client) Who() string { return "" }

// Diagnose says why an endpoint does not answer.
func (c *client) Diagnose(ctx context.Context, endpoint string) error {
	p, w := c.p, c.p.host.world
	p.gate(laneDiagnose)
	i := slices.IndexFunc(w.hosts, func(h *host) bool { return h.clientURL() == endpoint })
	to := w.hosts[i]
	l := p.host.lane(laneDiagnose)
	d := between(w.draw(uint64(l), uint64(i), 25), time.Millisecond, 3*time.Millisecond)
	w.wait(w.moment(d, l))
	w.mu.Lock()
	linked, up := w.linked(p.host, to), to.unit.process
	w.mu.Unlock()
	if linked && !up {
		p.gate(laneDiagnose)
		return errRefused
	}
	if linked {
		p.gate(laneDiagnose)
		return nil
	}
	bound := p.host.config.Timing.CallTimeout
	if deadline, ok := ctx.Deadline(); ok {
		bound = min(bound, time.Until(deadline))
	}
	w.wait(w.moment(bound+give(w, l), l))
	p.gate(laneDiagnose)
	return errTimeout
}

// ClockOffset compares the wall clock with the voters'.
func (c *client) ClockOffset(context.Context, func() time.Time) (time.Duration, error) {
	p, w := c.p, c.p.host.world
	p.gate(laneClock)
	l := p.host.lane(laneClock)
	w.wait(w.moment(between(w.draw(uint64(l), 26), time.Millisecond, 5*time.Millisecond), l))
	w.mu.Lock()
	var offsets []time.Duration
	for _, m := range w.etcd.members {
		if !m.learner && m.host.unit.ready() && w.linked(p.host, m.host) {
			offsets = append(offsets, p.host.off()-m.host.off())
		}
	}
	w.mu.Unlock()
	p.gate(laneClock)
	if len(offsets) == 0 {
		return 0, cluster.ErrNoClock
	}
	slices.Sort(offsets)
	return offsets[len(offsets)/2], nil
}
