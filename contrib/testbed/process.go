// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// process is a child process that cannot outlive this process.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has exited
	err  error         // result of exec.Cmd.Wait; read it only after done is closed
}

// startProcess starts cmd in its own process group, so that Ctrl-C on the terminal does not reach it. The kernel sends
// it deathSignal if this process dies. The kernel ties that signal to the thread that started the child, so
// startProcess keeps one thread alive for as long as the child runs.
func startProcess(cmd *exec.Cmd, deathSignal syscall.Signal) (*process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: deathSignal}
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// wait waits until the process has exited. It returns nil for exit code 0, *exec.ExitError for other codes and
// signals, or an error with the cause of ctx if ctx ends first.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return fmt.Errorf("process %d still runs: %w", p.cmd.Process.Pid, context.Cause(ctx))
	}
}

// stop waits for a process that has been asked to exit. If the process has not exited after bound, stop kills it and
// waits again.
func (p *process) stop(bound time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	ctx, cancel = context.WithTimeout(context.Background(), bound)
	defer cancel()
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("process %d is alive %v after SIGKILL; it may be waiting for its disk", p.cmd.Process.Pid,
			bound)
	}
}

// state returns the letter of the process state in /proc: R, S, D, T (stopped), Z …; see proc_pid_stat(5).
func (p *process) state() (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return "", err
	}
	// The state follows the command name in parentheses. A command name may itself contain ") ", but etcd's does not.
	_, after, _ := strings.Cut(string(text), ") ")
	letter, _, _ := strings.Cut(after, " ")
	return letter, nil
}
