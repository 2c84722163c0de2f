// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"time"

	"github.com/quorumd/quorumd/agent/hooks"
)

// program is the state of a host's service that runs commands. It outlives agents, but not a power loss.
type program struct {
	id     string
	asked  bool // the run was requested and has not begun
	result hooks.Result
}

// commands is an agent's access to the operator's programs: there are no hooks, and every command exists.
type commands struct{ p *process }

// Find finds every command.
func (c commands) Find(string) error { return nil }

// State returns the state of a run. There are no hooks, so runs of hooks always count as done.
func (c commands) State(_ context.Context, run hooks.Run) (hooks.Result, error) {
	c.p.gate(laneLoop)
	w := c.p.host.world
	w.mu.Lock()
	defer w.mu.Unlock()
	switch h := c.p.host; {
	case run.When != hooks.Command:
		return hooks.Result{State: hooks.Done}, nil
	case h.program.id != run.ID || h.program.asked:
		return hooks.Result{State: hooks.None}, nil
	default:
		return h.program.result, nil
	}
}

// Start requests a run, which begins after a delay. The delay may exceed the run's deadline.
func (c commands) Start(ctx context.Context, run hooks.Run) error {
	c.p.gate(laneStep)
	h := c.p.host
	w := h.world
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case h.program.id == run.ID || h.program.result.State == hooks.Running:
		return nil
	case chance(w.draw(50, uint64(h.index)), 10):
		return errors.New("the bus does not answer")
	}
	h.program = program{id: run.ID, asked: true}
	after := between(w.draw(51, uint64(h.index)), 10*time.Millisecond, 2*time.Second)
	if chance(w.draw(52, uint64(h.index)), 10) {
		after = between(w.draw(53, uint64(h.index)), time.Second, 2*hooks.BeginWithin)
	}
	began := h.booted - uptime
	w.after(after, laneFaults, func() {
		if h.powered && h.program.id == run.ID && h.program.asked {
			h.beginCommand(run, w.now()-began > run.Until)
		}
	})
	return nil
}

// beginCommand begins a command, or fails it if its deadline has passed.
func (h *host) beginCommand(run hooks.Run, late bool) {
	w := h.world
	h.program.asked = false
	if late {
		h.program.result = hooks.Result{State: hooks.Failed, Hook: run.Program, Text: "its deadline has passed"}
		return
	}
	h.program.result = hooks.Result{State: hooks.Running, Hook: run.Program}
	w.event(h, eventUnit, 50, "command begins")
	w.promises.checkCommand(h, run.ID)
	failed := chance(w.draw(54, uint64(h.index)), 25)
	w.after(between(w.draw(55, uint64(h.index)), time.Second, 4*time.Minute), laneFaults, func() {
		if h.program.id != run.ID || h.program.result.State != hooks.Running {
			return
		}
		h.program.result.State = hooks.Done
		if failed {
			h.program.result = hooks.Result{State: hooks.Failed, Hook: run.Program, Text: "exit status 1"}
		}
		w.event(h, eventUnit, 51, "command ended: %s", h.program.result.State)
	})
}

// checkCommand checks that a command begins only once, and not while an etcd that the host's agent has started is
// running.
func (p *promises) checkCommand(h *host, id string) {
	if p.commands[id] {
		p.breach("P8", h, "a command is run twice")
	}
	p.commands[id] = true
	if h.unit.running && h.unit.byAgent {
		p.breach("P2", h, "a command runs while an etcd that the host's agent started is running")
	}
}
