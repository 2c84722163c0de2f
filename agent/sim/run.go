// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/sim/keyspace"
)

// Options select what to simulate.
type Options struct {
	Seed   uint64
	Faulty time.Duration // how long faults are injected; the run continues until the cluster has recovered
	// Mistake is the seeded mistake. The zero value is no mistake.
	Mistake Mistake
	// Story receives one line per event. It may be nil.
	Story func(line string)

	plan    func(p *plan)                        // changes the seed's plan
	trouble func(w *world, length time.Duration) // replaces the random faults
}

// Result is the outcome of a run.
type Result struct {
	Plan      string
	Breach    *Breach // the first broken promise, or nil
	Lasted    time.Duration
	Recovered time.Duration // time from the end of the faults until the target was reached
	Trace     uint64        // identical in all runs of a seed
	counts
}

// After the last fault, the cluster must reach its target within recoverWithin, and must still be there stableFor
// later. The longest waits on the way are the backoff after failed joins and the time for which a repeatedly slow disk
// must be fast again. The time that an ejected host must be healthy is added to recoverWithin.
const (
	recoverWithin = 8 * time.Hour
	stableFor     = 10 * time.Minute
	checkEvery    = 5 * time.Second
)

// Run simulates a cluster. It must be called in a testing/synctest bubble. When it returns, everything that it started
// has ended.
func Run(opt Options) (Result, error) {
	p, err := newPlan(opt)
	if err != nil {
		return Result{}, err
	}
	w := newWorld(p, opt)
	w.mu.Lock()
	for _, h := range w.hosts {
		h.startAgent()
	}
	w.mu.Unlock()
	began := w.now()
	if !p.Fresh {
		w.waitFor(recoverWithin, w.atTarget)
	}
	if p.LostAt > 0 {
		w.mu.Lock()
		w.after(p.LostAt, laneFaults, w.tryQuorumLoss)
		w.mu.Unlock()
	}
	switch {
	case opt.trouble != nil:
		opt.trouble(w, p.Faulty)
	case opt.Mistake.trouble != nil:
		w.mu.Lock()
		opt.Mistake.trouble(w)
		w.mu.Unlock()
		w.wait(w.moment(p.Faulty, laneFaults))
	default:
		w.makeFaults(p.Faulty)
	}
	w.heal()
	quiet := w.now()
	w.mu.Lock()
	longest := w.promises.longestClean()
	w.mu.Unlock()
	reached := w.waitFor(recoverWithin+longest, w.atTarget)
	recovered := w.now() - quiet
	if reached {
		w.waitFor(stableFor, func() string { return "rest" })
	}
	w.mu.Lock()
	if missing := w.atTarget(); missing != "" {
		w.promises.breach("liveness", nil, fmt.Sprintf("the faults ended %s ago, and %s",
			(w.now()-quiet).Round(time.Second), missing))
	}
	out := Result{
		Plan: p.String(), Breach: w.promises.first, Lasted: w.now() - began, Recovered: recovered,
		Trace: w.trace, counts: w.counts,
	}
	w.end()
	w.mu.Unlock()
	w.wait(w.now() + time.Hour) // every goroutine still running ends within its time limit
	return out, nil
}

func newWorld(p plan, opt Options) *world {
	w := &world{
		plan: p, keys: record.KeysFor("sim"), mistake: opt.Mistake, began: time.Now(), story: opt.Story,
		faults: rand.New(rand.NewPCG(p.Seed, 2)), reserved: map[int64]bool{},
	}
	w.promises = promises{
		w: w, lockHeldAt: map[*process]time.Duration{}, commands: map[string]bool{},
		lastSteps: map[*process]repeatedStep{}, repairedAt: map[uint64]time.Duration{},
		slowLeaderSince: map[*process]time.Duration{}, ejections: map[*host]ejection{},
		unhealthy: map[*host]unhealthyPeriod{}, replaces: map[*host]uint64{},
	}
	w.etcd = &etcd{w: w, store: keyspace.New(), removed: map[uint64]*member{}, index: 10, term: 1}
	w.etcds = []*etcd{w.etcd}
	for i := range p.Hosts {
		w.hosts = append(w.hosts, newHost(w, i))
		w.links = append(w.links, make([]link, p.Hosts))
	}
	for _, h := range w.hosts {
		if opt.Mistake.timing != nil {
			opt.Mistake.timing(&h.config.Timing)
		}
		if opt.Mistake.config != nil {
			opt.Mistake.config(&h.config)
		}
	}
	return w
}

// end stops all agents, and all scheduled events.
func (w *world) end() {
	w.ended = true
	for _, h := range w.hosts {
		h.kill()
	}
}

// waitFor lets time pass until missing returns an empty text or a promise is broken, but no longer than limit.
// Meanwhile, operators do what only they can do. waitFor reports whether nothing is missing.
func (w *world) waitFor(limit time.Duration, missing func() string) bool {
	for end := w.now() + limit; w.now() < end; {
		w.wait(w.moment(checkEvery, laneFaults))
		w.mu.Lock()
		done, broken := missing() == "", w.promises.first != nil
		w.repairDeadByHand()
		w.repairUnhealthyByHand()
		w.resizeBack()
		w.readdressBack()
		if w.etcd.clusterID == 0 {
			w.requestBootstrap(w.hosts[0])
		}
		w.mu.Unlock()
		if done || broken {
			return done
		}
	}
	return false
}

// atTarget returns how the state differs from the target, or "" if it does not.
func (w *world) atTarget() string {
	e := w.etcd
	voters, learners := len(e.voters()), len(e.learners())
	permanent := w.plan.maxLearners() - 1
	switch {
	case w.recovery.lost:
		return "the recovery of the cluster has not ended"
	case voters != w.plan.Voters:
		return fmt.Sprintf("there are %d voters, not %d", voters, w.plan.Voters)
	case learners-permanent != min(w.plan.Standbys, w.plan.Hosts-permanent-w.countLostForGood()-w.plan.Voters):
		return fmt.Sprintf("there are %d learners, not %d", learners, w.plan.Standbys+permanent)
	case w.promises.currentOp() != nil:
		return "an operation is in flight: " + w.promises.currentOp().HostName
	case w.promises.lockOwner() != nil:
		return "the lock is held"
	}
	for _, m := range e.members {
		if url := m.host.peerURL(); m.peerURL != url || m.host.unit.listens != url {
			return fmt.Sprintf("member %s is registered with %s and listens at %s, not at %s", m.host.name, m.peerURL,
				m.host.unit.listens, url)
		}
		if m.downAt != 0 {
			return "member " + m.host.name + " is down"
		}
		if m.host.disk.chronic && !m.learner {
			return "the disk of voter " + m.host.name + " is permanently slow"
		}
	}
	return w.pendingRequest()
}

// requestBootstrap lets an operator request a bootstrap.
func (w *world) requestBootstrap(h *host) {
	w.operator(h, func(ctx context.Context, p *process) {
		err := p.agent.Bootstrap(ctx, "an operator") // the request may be refused
		w.mu.Lock()
		defer w.mu.Unlock()
		w.event(h, eventFault, 5, "bootstrap requested: %v", err)
	})
}

// operator lets an operator send a request to a host's agent, unless no agent runs or it already processes a request.
func (w *world) operator(h *host, ask func(ctx context.Context, p *process)) {
	p := h.agent
	if p == nil || !h.powered || p.busy {
		return
	}
	p.busy = true
	go func() {
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			p.busy = false
		}()
		w.wait(w.moment(time.Millisecond, h.lane(laneOperator)))
		p.gate(laneOperator)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		ask(ctx, p)
	}()
}

// logger returns an agent's logger, which writes to Options.Story, or discards everything if that is nil.
func (w *world) logger(h *host) *slog.Logger {
	if w.story == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(&storyHandler{w: w, h: h})
}

// storyHandler writes an agent's log to Options.Story.
type storyHandler struct {
	w *world
	h *host
}

// Enabled returns false for debug messages.
func (*storyHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo
}

// WithAttrs is unused by the agent.
func (t *storyHandler) WithAttrs([]slog.Attr) slog.Handler { return t }

// WithGroup is unused by the agent.
func (t *storyHandler) WithGroup(string) slog.Handler { return t }

// Handle writes a line.
func (t *storyHandler) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	if r.Message != "step done" { // promises.onStep writes that line
		t.w.mu.Lock()
		defer t.w.mu.Unlock()
		t.w.story(fmt.Sprintf("%s  %s    log: %s", clock(t.w.now()), t.h.name, text))
	}
	return nil
}
