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
	Faulty time.Duration // how long faults are injected; the quiet time is added
	// Mistake is put into every agent; the zero value is none.
	Mistake Mistake
	// Story receives every event, line by line. It may be nil.
	Story func(line string)

	plan    func(p *plan)                        // changes the seed's plan
	trouble func(w *world, length time.Duration) // replaces the random faults
}

// Result is the result of a run.
type Result struct {
	Plan      string
	Breach    *Breach // the first broken promise, or nil
	Lasted    time.Duration
	Recovered time.Duration // from the end of the faults to the target
	Trace     uint64        // identical for the same seed
	counts
}

// The quiet time: how long it may take until the target is reached after the last fault, and how long it must then be
// kept. The longest waits on the way are the backoff after failed joins, an hour, and the time that a repeatedly slow
// disk must be clean. The time that an ejected host must be healthy is added.
const (
	recoverWithin = 8 * time.Hour
	restFor       = 10 * time.Minute
	lookEvery     = 5 * time.Second
)

// Run simulates a cluster. It must be called in a bubble of testing/synctest. All that it starts has ended when it
// returns.
func Run(opt Options) (Result, error) {
	p, err := planOf(opt)
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
		w.until(recoverWithin, w.atTarget)
	}
	if p.Lost > 0 {
		w.mu.Lock()
		w.after(p.Lost, laneFaults, w.quorumLoss)
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
	reached := w.until(recoverWithin+longest, w.atTarget)
	recovered := w.now() - quiet
	if reached {
		w.until(restFor, func() string { return "rest" })
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
	w.wait(w.now() + time.Hour) // what is in progress ends by itself: all of it is bounded
	return out, nil
}

func newWorld(p plan, opt Options) *world {
	w := &world{
		plan: p, keys: record.KeysFor("sim"), mistake: opt.Mistake, began: time.Now(), story: opt.Story,
		faults: rand.New(rand.NewPCG(p.Seed, 2)), reserved: map[int64]bool{},
	}
	w.promises = promises{
		w: w, owned: map[*process]time.Duration{}, commands: map[string]bool{},
		taking: map[*process]taking{}, repairs: map[uint64]time.Duration{}, leads: map[*process]time.Duration{},
		out: map[*host]ejected{}, unhealthy: map[*host]unhealthyPeriod{}, replaces: map[*host]uint64{},
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

// end stops everything.
func (w *world) end() {
	w.ended = true
	for _, h := range w.hosts {
		h.kill()
	}
}

// until lets time pass until nothing is missing or a promise is broken.
func (w *world) until(limit time.Duration, missing func() string) bool {
	for end := w.now() + limit; w.now() < end; {
		w.wait(w.moment(lookEvery, laneFaults))
		w.mu.Lock()
		done, broken := missing() == "", w.promises.first != nil
		w.byHand()
		w.repairUnhealthyByHand()
		if w.etcd.clusterID == 0 {
			w.askToBootstrap(w.hosts[0])
		}
		w.mu.Unlock()
		if done || broken {
			return done
		}
	}
	return false
}

// atTarget returns what is missing from the target state, or "".
func (w *world) atTarget() string {
	e := w.etcd
	voters, learners := len(e.voters()), len(e.learners())
	switch {
	case w.rescue.lost:
		return "the recovery of the cluster is not over"
	case voters != w.plan.Voters:
		return fmt.Sprintf("there are %d voters, not %d", voters, w.plan.Voters)
	case learners != min(w.plan.Standbys, w.plan.Hosts-w.lostForGood()-w.plan.Voters):
		return fmt.Sprintf("there are %d learners, not %d", learners, w.plan.Standbys)
	case w.promises.currentOp() != nil:
		return "an operation is in flight: " + w.promises.currentOp().HostName
	case w.promises.lockOwner() != nil:
		return "the lock is held"
	}
	for _, m := range e.members {
		if m.downAt != 0 {
			return "member " + m.host.name + " is down"
		}
		if m.host.disk.chronic && !m.learner {
			return "the disk of voter " + m.host.name + " is slow for good"
		}
	}
	return w.stillAsked()
}

// askToBootstrap is an operator's request to bootstrap, which may be repeated.
func (w *world) askToBootstrap(h *host) {
	w.operator(h, func(ctx context.Context, p *process) {
		err := p.agent.Bootstrap(ctx, "an operator") // a refusal is fine
		w.mu.Lock()
		defer w.mu.Unlock()
		w.happen(h, happenedFault, 5, "is asked to bootstrap: %v", err)
	})
}

// operator lets an operator send a request to an agent, unless another request is in progress.
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

// logger returns an agent's logger: none, or one that writes into the story.
func (w *world) logger(h *host) *slog.Logger {
	if w.story == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(&storyHandler{w: w, h: h})
}

// storyHandler writes an agent's log into the story.
type storyHandler struct {
	w *world
	h *host
}

// Enabled skips debug messages.
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
	if r.Message != "step done" { // the world logs it
		t.w.mu.Lock()
		defer t.w.mu.Unlock()
		t.w.story(fmt.Sprintf("%s  %s    log: %s", clock(t.w.now()), t.h.name, text))
	}
	return nil
}
