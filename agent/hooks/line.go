// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

const (
	// killGrace is the time between SIGTERM and SIGKILL.
	killGrace = 5 * time.Second
	// EndWithin is how long after its deadline a program has ended in any case, killed if necessary.
	EndWithin = 2*killGrace + 5*time.Second
	// defaultPath is the PATH of programs if none is set.
	defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// Line is the side that runs the programs.
type Line struct {
	Dir      string        // contains before.d, after.d, commands.d and etcd.d
	Wanted   string        // where the agent records what to run
	Outcomes string        // where this side reports the outcome
	Host     string        // this host's name, in QUORUMD_HOST
	Timeout  time.Duration // for each program
	Command  time.Duration // the same, for a command
	Output   io.Writer     // receives the programs' output
	// Trust returns why a program must not run because a user other than its owner could have changed it; nil: no
	// check.
	Trust  func(program string) error
	Logger *slog.Logger
}

// Run runs what the agent has requested, unless it was run already, and reports the state in the directory of outcomes.
// An error means that there is nothing to report, or that the report failed.
func (l Line) Run(ctx context.Context, when string) error {
	if _, named := namedDirs()[when]; when != Before && when != After && !named {
		return fmt.Errorf("cannot run hooks %q: say before, after, command or etcd", when)
	}
	var w wanted
	if err := read(wantedPath(l.Wanted, when), &w); err != nil {
		return fmt.Errorf("cannot run hooks: quorumd has not requested any: %w", err)
	}
	held, err := lock(l.Outcomes, when)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return nil // another process runs them already
	}
	if err != nil {
		return fmt.Errorf("cannot run hooks: %w", err)
	}
	defer held.Close()
	var last outcome
	if err := read(outcomePath(l.Outcomes, when), &last); err == nil && last.ID == w.ID {
		return nil // a run is never repeated, whatever its outcome
	}
	tell := func(o outcome) error {
		o.ID = w.ID
		if err := write(outcomePath(l.Outcomes, when), 0o644, o); err != nil {
			return fmt.Errorf("cannot tell how the hooks go: %w", err)
		}
		return nil
	}
	return l.each(ctx, when, w, tell)
}

// each runs the programs one after the other.
func (l Line) each(ctx context.Context, when string, w wanted, tell func(outcome) error) error {
	programs, err := list(l.Dir, when, w.Program)
	if err != nil {
		return tell(outcome{State: Failed, Text: plain(err.Error())})
	}
	what := "hook"
	if when == Command {
		what = "command"
	}
	for _, program := range programs {
		name := filepath.Base(program)
		if err := tell(outcome{State: Running, Hook: name}); err != nil {
			return err
		}
		if late, err := tooLate(w); late || err != nil {
			return errors.Join(err, tell(outcome{
				State: Failed, Hook: name,
				Text: "it was not begun: its time to begin was over",
			}))
		}
		began := time.Now()
		if text := l.one(ctx, program, when, w); text != "" {
			l.Logger.Error("program failed", "kind", what, "when", when, "program", name, "elapsed",
				time.Since(began).Round(time.Millisecond).String(), "text", text)
			return tell(outcome{State: Failed, Hook: name, Text: text})
		}
		l.Logger.Info("program done", "kind", what, "when", when, "program", name, "elapsed",
			time.Since(began).Round(time.Millisecond).String())
	}
	return tell(outcome{State: Done, Text: fmt.Sprintf("%d %ss", len(programs), what)})
}

// one runs a program, and returns why it failed, or "".
func (l Line) one(ctx context.Context, program, when string, w wanted) string {
	if text := unfit(program); text != "" {
		return text
	}
	if l.Trust != nil {
		if err := l.Trust(program); err != nil {
			return plain(err.Error())
		}
	}
	limit := l.Timeout
	if when == Command {
		limit = l.Command
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	said := &tail{to: l.Output}
	c := exec.CommandContext(ctx, program)
	c.Dir, c.Stdout, c.Stderr = "/", said, said
	c.Env = environment(when, l.Host, w)
	runtime.LockOSThread() // Pdeathsig is sent when the thread ends that started the program
	defer runtime.UnlockOSThread()
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL} // its end would go unreported
	c.Cancel = func() error {
		time.AfterFunc(killGrace, func() { _ = unix.Kill(-c.Process.Pid, unix.SIGKILL) })
		return unix.Kill(-c.Process.Pid, unix.SIGTERM)
	}
	c.WaitDelay = killGrace + time.Second
	err := c.Run()
	if ctx.Err() != nil && c.Process != nil {
		_ = unix.Kill(-c.Process.Pid, unix.SIGKILL) // what it left behind
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Sprintf("it took longer than %s and was killed", durationfmt.Text(limit))
	case ctx.Err() != nil:
		return "it was interrupted"
	case errors.Is(err, exec.ErrWaitDelay), err == nil: // it is done; a child of its own still has the output open
		return ""
	}
	return plain(strings.TrimSuffix(err.Error()+": "+said.line(), ": "))
}

// environment returns the complete environment of a program.
func environment(when, host string, w wanted) []string {
	path := os.Getenv("PATH")
	if path == "" {
		path = defaultPath
	}
	env := []string{
		"PATH=" + path, "HOME=" + os.Getenv("HOME"), "LANG=C.UTF-8",
		"QUORUMD_WHEN=" + when, "QUORUMD_HOST=" + host,
		"QUORUMD_WORK=" + plain(w.Work), "QUORUMD_REASON=" + plain(w.Reason), "QUORUMD_BY=" + plain(w.By),
	}
	if w.Program != "" {
		env = append(env, "QUORUMD_COMMAND="+plain(w.Program))
	}
	return env
}

// tail passes output on and keeps the end of it.
type tail struct {
	to io.Writer

	mu  sync.Mutex
	end []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, p...)
	if over := len(t.end) - 4*maxText; over > 0 {
		t.end = t.end[over:]
	}
	return t.to.Write(p)
}

// line returns the last line that is not empty.
func (t *tail) line() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := bytes.Split(bytes.TrimSpace(t.end), []byte("\n"))
	return string(lines[len(lines)-1])
}
