// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"time"

	"github.com/quorumd/quorumd/agent/hooks"
)

// program is what a host's service for commands is doing. It outlives agents, but not a power loss.
type program struct {
	id     string
	asked  bool // it was requested and has reported nothing yet
	result hooks.Result
}

// commands are the operator's programs as seen by one agent process: no hooks, and every command exists.
type commands struct{ p *process }

// Find finds every command.
func (c commands) Find(string) error { return nil }

// State returns the state of a run. There are no hooks, so they always count as done.
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

// Start lets a command begin after a delay, which may be too long.
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

// beginCommand begins a command unless its time has passed.
func (h *host) beginCommand(run hooks.Run, late bool) {
	w := h.world
	h.program.asked = false
	if late {
		h.program.result = hooks.Result{State: hooks.Failed, Hook: run.Program, Text: "its time was over"}
		return
	}
	h.program.result = hooks.Result{State: hooks.Running, Hook: run.Program}
	w.happen(h, happenedUnit, 50, "command begins")
	w.promises.beginCommand(h, run.ID)
	failed := chance(w.draw(54, uint64(h.index)), 25)
	w.after(between(w.draw(55, uint64(h.index)), time.Second, 4*time.Minute), laneFaults, func() {
		if h.program.id != run.ID || h.program.result.State != hooks.Running {
			return
		}
		h.program.result.State = hooks.Done
		if failed {
			h.program.result = hooks.Result{State: hooks.Failed, Hook: run.Program, Text: "exit status 1"}
		}
		w.happen(h, happenedUnit, 51, "command has ended: %s", h.program.result.State)
	})
}

// beginCommand checks the start of a command: never twice, and never while an etcd runs that its agent has started.
func (p *promises) beginCommand(h *host, id string) {
	if p.commands[id] {
		p.breach("P8", h, "a command is run twice")
	}
	p.commands[id] = true
	if h.unit.process && h.unit.byAgent {
		p.breach("P2", h, "a command runs while an etcd that its agent started is running")
	}
}
