// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package defrag

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/child"
	"github.com/quorumd/quorumd/agent/etcddb"
	"github.com/quorumd/quorumd/agent/hooks"
)

// maxLine limits a line of a child's output, in bytes, because the child runs as etcd's user and is not trusted.
const maxLine = 1 << 20

// title is the Hook in the result of a defragmentation. In the result of a hook, Hook names the program.
const title = "defragmentation"

// Programs runs defragmentations in child processes, and passes all other runs to the embedded Programs. A
// defragmentation is a run with When = [hooks.Defrag].
type Programs struct {
	hooks.Programs

	Command []string // runs this program, without the name of the hidden command
	DataDir string
	Limit   time.Duration // how long a compaction may take
	Ended   func()        // called when a compaction ends; may be nil

	mu   sync.Mutex
	id   string // ID of the last run
	last hooks.Result
}

// Start starts a run, unless it has begun already. It does not wait for its end.
func (p *Programs) Start(ctx context.Context, run hooks.Run) error {
	if run.When != hooks.Defrag {
		return p.Programs.Start(ctx, run)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.id == run.ID:
		return nil
	case p.last.State == hooks.Running:
		return errors.New("another defragmentation is still running")
	}
	p.id, p.last = run.ID, hooks.Result{State: hooks.Running, Hook: title}
	go p.compact(run.ID)
	return nil
}

// State returns the state of a run. A defragmentation that an earlier process started has the state None or Failed.
func (p *Programs) State(ctx context.Context, run hooks.Run) (hooks.Result, error) {
	if run.When != hooks.Defrag {
		return p.Programs.State(ctx, run)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.id != run.ID {
		return p.unknown(run)
	}
	return p.last, nil
}

// unknown returns the state of a run that this process has not started. After the deadline to start, a run that an
// earlier process started has failed: its child was killed with that process, or ends without reporting a result.
func (p *Programs) unknown(run hooks.Run) (hooks.Result, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return hooks.Result{}, fmt.Errorf("cannot read the clock: %w", err)
	}
	started := run.Until > hooks.BeginWithin // before the start is recorded, Until is at most BeginWithin
	if started && time.Duration(now.Nano()) > run.Until {
		return hooks.Result{
			State: hooks.Failed, Hook: title, Text: "quorumd was restarted during the defragmentation",
		}, nil
	}
	return hooks.Result{State: hooks.None}, nil
}

// compact runs a compaction. It may outlive the step that started it, so it has its own time limit.
func (p *Programs) compact(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), p.Limit)
	defer cancel()
	var r Result
	done := hooks.Result{State: hooks.Done, Hook: title}
	if err := p.run(ctx, compactVerb, &r); err != nil {
		done.State, done.Text = hooks.Failed, err.Error()
	} else {
		done.Text = r.String()
	}
	p.mu.Lock()
	if p.id == id {
		p.last = done
	}
	p.mu.Unlock()
	if p.Ended != nil {
		p.Ended()
	}
}

// Clean runs the function [Clean] in a child process.
func (p *Programs) Clean(ctx context.Context) error {
	return p.run(ctx, cleanVerb, &struct{}{})
}

func (p *Programs) run(ctx context.Context, verb string, result any) error {
	args := slices.Concat(p.Command[1:], []string{Command, p.DataDir, verb})
	err := child.Run(exec.CommandContext(ctx, p.Command[0], args...), maxLine, nil, result)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("it took too long and was killed: %w", ctx.Err())
	}
	return err
}

// String returns the sizes and the duration as text.
func (r Result) String() string {
	return fmt.Sprintf("%s before, %s after, in %.1f s", mib(r.Before), mib(r.After), r.Seconds)
}

// maxCPU limits the processor time of the child.
const maxCPU = time.Hour

// Main runs the child. Its arguments are the data directory and the verb.
func Main(args []string, stdout io.Writer) error {
	if len(args) != 2 {
		return errors.New("a directory and a verb are expected")
	}
	limits := etcddb.Limits{Memory: etcddb.HalfOfMemory(), CPU: maxCPU}
	if err := limits.Confine(); err != nil {
		return err
	}
	return child.Main(context.Background(), stdout, func(ctx context.Context, progress *child.Progress) (any, error) {
		switch args[1] {
		case compactVerb:
			return Compact(ctx, args[0], progress)
		case cleanVerb:
			return struct{}{}, Clean(args[0])
		}
		return nil, fmt.Errorf("unknown verb %q", args[1])
	})
}
