// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"github.com/quorumd/quorumd/agent/cluster"
)

// client is an agent's etcd client: the real client of package cluster, which uses etcd's own client. Only the network
// is simulated: the interceptors in transport.go carry the requests.
type client struct {
	*cluster.Client
	p *process
}

func newClient(p *process) (*client, error) {
	c := &client{p: p}
	var endpoints []string
	for _, h := range p.host.world.hosts {
		endpoints = append(endpoints, h.clientURL())
	}
	var err error
	c.Client, err = cluster.New(cluster.Options{
		Endpoints: endpoints, CallTimeout: p.host.config.Timing.CallTimeout, Logger: slog.New(slog.DiscardHandler),
		Dial: []grpc.DialOption{grpc.WithChainUnaryInterceptor(c.unary), grpc.WithChainStreamInterceptor(c.stream)},
	})
	return c, err
}

// stepKey is the context key for the name of a call that an agent makes outside its loop. Such calls have their own
// lane.
type stepKey struct{}

func withStep(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, stepKey{}, name)
}

// AddLearner adds a learner.
func (c *client) AddLearner(ctx context.Context, peerURL string) (cluster.Member, error) {
	return c.Client.AddLearner(withStep(ctx, "add learner"), peerURL)
}

// Promote makes a learner a voter.
func (c *client) Promote(ctx context.Context, id uint64, leaderURL string) error {
	return c.Client.Promote(withStep(ctx, "promote"), id, leaderURL)
}

// UpdateMember replaces a member's peer URL.
func (c *client) UpdateMember(ctx context.Context, id uint64, peerURL string) error {
	return c.Client.UpdateMember(withStep(ctx, "update member"), id, peerURL)
}

// RemoveLearner removes a learner.
func (c *client) RemoveLearner(ctx context.Context, id uint64) error {
	return c.Client.RemoveLearner(withStep(ctx, "remove learner"), id)
}

// RemoveMember removes a member of any role.
func (c *client) RemoveMember(ctx context.Context, id uint64) error {
	return c.Client.RemoveMember(withStep(ctx, "remove member"), id)
}

// ReadLast returns the last pairs of a prefix.
func (c *client) ReadLast(ctx context.Context, prefix string, limit int64) (cluster.Range, error) {
	return c.Client.ReadLast(withStep(ctx, "read last"), prefix, limit)
}

func (c *client) lane(ctx context.Context) lane {
	if c.stepName(ctx) != "" {
		return laneStep
	}
	return laneLoop
}

func (c *client) stepName(ctx context.Context) string {
	name, _ := ctx.Value(stepKey{}).(string)
	return name
}

// Diagnose returns why an endpoint does not answer, or nil if it answers.
func (c *client) Diagnose(ctx context.Context, endpoint string) error {
	p, w := c.p, c.p.host.world
	p.gate(laneDiagnose)
	i := slices.IndexFunc(w.hosts, func(h *host) bool { return h.clientURL() == endpoint })
	to := w.hosts[i]
	l := p.host.lane(laneDiagnose)
	d := between(w.draw(uint64(l), uint64(i), 25), time.Millisecond, 3*time.Millisecond)
	w.wait(w.moment(d, l))
	w.mu.Lock()
	linked, up := w.linked(p.host, to), to.unit.running
	w.mu.Unlock()
	if linked && !up {
		p.gate(laneDiagnose)
		return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	if linked {
		p.gate(laneDiagnose)
		return nil
	}
	bound := p.host.config.Timing.CallTimeout
	if deadline, ok := ctx.Deadline(); ok {
		bound = min(bound, time.Until(deadline))
	}
	w.wait(w.moment(bound+timeoutDelay(w, l), l))
	p.gate(laneDiagnose)
	return fmt.Errorf("no answer: %w", context.DeadlineExceeded)
}

// ClockOffset returns the median of the offsets between the host's wall clock and those of the voters that it reaches.
func (c *client) ClockOffset(context.Context, func() time.Time) (time.Duration, error) {
	p, w := c.p, c.p.host.world
	p.gate(laneClock)
	l := p.host.lane(laneClock)
	w.wait(w.moment(between(w.draw(uint64(l), 26), time.Millisecond, 5*time.Millisecond), l))
	w.mu.Lock()
	var offsets []time.Duration
	for _, m := range w.etcd.members {
		if !m.learner && m.host.unit.ready() && w.linked(p.host, m.host) {
			offsets = append(offsets, p.host.wallOffset()-m.host.wallOffset())
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
