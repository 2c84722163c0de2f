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
	// EndWithin is the time within which a program ends after it has reached its time limit, killed if necessary.
	EndWithin = 2*killGrace + 5*time.Second
	// defaultPath is the PATH of programs if none is set.
	defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// Runner runs the requested programs.
type Runner struct {
	Dir      string        // contains before.d, after.d, commands.d and etcd.d
	Requests string        // directory with the agent's requests
	Outcomes string        // directory for the outcomes
	Host     string        // this host's name, passed to programs in QUORUMD_HOST
	Timeout  time.Duration // the limit for each program, except a command
	Command  time.Duration // the limit for a command
	Output   io.Writer     // receives the programs' output
	// Trust returns why a program must not run, for example because a user other than root could have changed it. If
	// Trust is nil, every program is trusted.
	Trust  func(program string) error
	Logger *slog.Logger
}

// Run runs the programs that the agent has requested, unless they have run already, and reports the state in Outcomes.
// An error means that Run could not start or could not report.
func (r Runner) Run(ctx context.Context, when string) error {
	if _, named := namedDirs()[when]; when != Before && when != After && !named {
		return fmt.Errorf("cannot run hooks %q: use before, after, command or etcd", when)
	}
	var w request
	if err := read(requestPath(r.Requests, when), &w); err != nil {
		return fmt.Errorf("cannot run hooks: quorumd's request is missing or unreadable: %w", err)
	}
	held, err := lock(r.Outcomes, when)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return nil // another runner is already running the programs
	}
	if err != nil {
		return fmt.Errorf("cannot run hooks: %w", err)
	}
	defer held.Close()
	var last outcome
	if err := read(outcomePath(r.Outcomes, when), &last); err == nil && last.ID == w.ID {
		return nil // a run is never repeated, whatever its outcome
	}
	report := func(o outcome) error {
		o.ID = w.ID
		if err := write(outcomePath(r.Outcomes, when), 0o644, o); err != nil {
			return fmt.Errorf("cannot report the state of the hooks: %w", err)
		}
		return nil
	}
	return r.runAll(ctx, when, w, report)
}

// runAll runs the programs one after the other until one fails, and reports the state.
func (r Runner) runAll(ctx context.Context, when string, w request, report func(outcome) error) error {
	programs, err := list(r.Dir, when, w.Program)
	if err != nil {
		return report(outcome{State: Failed, Text: sanitize(err.Error())})
	}
	what := "hook"
	if when == Command {
		what = "command"
	}
	for _, program := range programs {
		name := filepath.Base(program)
		if err := report(outcome{State: Running, Hook: name}); err != nil {
			return err
		}
		if late, err := isTooLate(w); late || err != nil {
			return errors.Join(err, report(outcome{
				State: Failed, Hook: name,
				Text: "not started: its deadline to start has passed",
			}))
		}
		began := time.Now()
		if text := r.runOne(ctx, program, when, w); text != "" {
			r.Logger.Error("program failed", "kind", what, "when", when, "program", name, "elapsed",
				time.Since(began).Round(time.Millisecond).String(), "text", text)
			return report(outcome{State: Failed, Hook: name, Text: text})
		}
		r.Logger.Info("program done", "kind", what, "when", when, "program", name, "elapsed",
			time.Since(began).Round(time.Millisecond).String())
	}
	return report(outcome{State: Done, Text: fmt.Sprintf("%d %ss", len(programs), what)})
}

// runOne runs a program, and returns why it failed, or "".
func (r Runner) runOne(ctx context.Context, program, when string, w request) string {
	if text := whyNotRunnable(program); text != "" {
		return text
	}
	if r.Trust != nil {
		if err := r.Trust(program); err != nil {
			return sanitize(err.Error())
		}
	}
	limit := r.Timeout
	if when == Command {
		limit = r.Command
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	output := &tail{to: r.Output}
	c := exec.CommandContext(ctx, program)
	c.Dir, c.Stdout, c.Stderr = "/", output, output
	c.Env = environment(when, r.Host, w)
	runtime.LockOSThread() // the kernel sends Pdeathsig when the thread that started the program ends
	defer runtime.UnlockOSThread()
	// No process would report the result of a program that outlives the runner.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	c.Cancel = func() error {
		time.AfterFunc(killGrace, func() { _ = unix.Kill(-c.Process.Pid, unix.SIGKILL) })
		return unix.Kill(-c.Process.Pid, unix.SIGTERM)
	}
	c.WaitDelay = killGrace + time.Second
	err := c.Run()
	if ctx.Err() != nil && c.Process != nil {
		_ = unix.Kill(-c.Process.Pid, unix.SIGKILL) // kills the program's remaining children
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Sprintf("it took longer than %s and was killed", durationfmt.Text(limit))
	case ctx.Err() != nil:
		return "it was interrupted"
	case errors.Is(err, exec.ErrWaitDelay), err == nil: // ErrWaitDelay: a child still has the output open
		return ""
	}
	return sanitize(strings.TrimSuffix(err.Error()+": "+output.line(), ": "))
}

// environment returns the complete environment of a program.
func environment(when, host string, w request) []string {
	path := os.Getenv("PATH")
	if path == "" {
		path = defaultPath
	}
	env := []string{
		"PATH=" + path, "HOME=" + os.Getenv("HOME"), "LANG=C.UTF-8",
		"QUORUMD_WHEN=" + when, "QUORUMD_HOST=" + host,
		"QUORUMD_WORK=" + sanitize(w.Work), "QUORUMD_REASON=" + sanitize(w.Reason), "QUORUMD_BY=" + sanitize(w.By),
	}
	if w.Program != "" {
		env = append(env, "QUORUMD_COMMAND="+sanitize(w.Program))
	}
	return env
}

// tail forwards output and keeps the end of it.
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
