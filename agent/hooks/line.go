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
	// killGrace is the time between asking a program to end and killing it.
	killGrace = 5 * time.Second
	// EndWithin is how long after its time was over a program has ended in any case, killed if need be.
	EndWithin = 2*killGrace + 5*time.Second
	// defaultPath is where programs are looked for when nobody has said so.
	defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// Line is the side that runs the programs.
type Line struct {
	Dir      string        // holds before.d, after.d, commands.d and etcd.d
	Wanted   string        // where the agent notes what is to be run
	Outcomes string        // where this side tells how it goes
	Host     string        // this host's name, in QUORUMD_HOST
	Timeout  time.Duration // for each program
	Command  time.Duration // the same, for a command
	Output   io.Writer     // takes what the programs write
	// Trust tells why a program is not to be run because another than its owner could have changed it; nil: not asked.
	Trust  func(program string) error
	Logger *slog.Logger
}

// Run runs what the agent wants to be run now, unless it was run already, and tells how it goes in the directory of
// the outcomes. The error says that there is nothing to tell about, or that it cannot be told.
func (l Line) Run(ctx context.Context, when string) error {
	if _, named := namedDirs()[when]; when != Before && when != After && !named {
		return fmt.Errorf("cannot run hooks %q: say before, after, command or etcd", when)
	}
	var w wanted
	if err := read(wantedPath(l.Wanted, when), &w); err != nil {
		return fmt.Errorf("cannot run hooks: quorumd wants none: %w", err)
	}
	held, err := lock(l.Outcomes, when)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return nil // they run already
	}
	if err != nil {
		return fmt.Errorf("cannot run hooks: %w", err)
	}
	defer held.Close()
	var last outcome
	if err := read(outcomePath(l.Outcomes, when), &last); err == nil && last.ID == w.ID {
		return nil // once is enough, however it went
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

// one runs a program, and gives why it failed, or nothing.
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
	runtime.LockOSThread() // the signal below comes when the thread ends that has started the program
	defer runtime.UnlockOSThread()
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL} // nobody would tell of its end
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
	case errors.Is(err, exec.ErrWaitDelay), err == nil: // it is done; a child of its own still writes
		return ""
	}
	return plain(strings.TrimSuffix(err.Error()+": "+said.line(), ": "))
}

// environment is all that a program is told.
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

// tail passes on what is written and keeps the end of it.
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

// line gives the last line that is not empty.
func (t *tail) line() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := bytes.Split(bytes.TrimSpace(t.end), []byte("\n"))
	return string(lines[len(lines)-1])
}
