// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/quorumd/quorumd/agent/control"
)

// checkExecutable returns an error if the command does not exist or is not executable.
func checkExecutable(command string) error {
	_, err := exec.LookPath(command)
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*exec.Error](err); ok {
		err = e.Err
	}
	return usage("check the command; nothing was done", "cannot run %s: %v", command, err)
}

// runCommand runs a command on this terminal and returns its exit code, or 128 plus the signal's number if a signal
// ended it, as shells do. Signals do not end quorumctl, because the host must be brought back. The terminal sends
// SIGINT and SIGQUIT to the command itself. runCommand forwards SIGTERM and SIGHUP.
func (a *app) runCommand(command []string, in io.Reader, out io.Writer, signals <-chan os.Signal) (int, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, a.err
	if err := cmd.Start(); err != nil {
		return exitFault, fmt.Errorf("cannot run %s: %w", command[0], err)
	}
	for range len(signals) { // signals that arrived before the command started
		_ = cmd.Process.Signal(<-signals)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			if s == syscall.SIGTERM || s == syscall.SIGHUP {
				_ = cmd.Process.Signal(s) // fails only if the command has just ended
			}
		case err := <-ended:
			return commandExitCode(command[0], err)
		}
	}
}

func commandExitCode(name string, err error) (int, error) {
	if err == nil {
		return exitOK, nil
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return exitFault, fmt.Errorf("%s: %w", name, err)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), fmt.Errorf("%s was killed by a signal: %s", name, status.Signal())
	}
	return exit.ExitCode(), nil
}

// bringBackAfter ends the maintenance after the command, even if the command was interrupted. The command may have
// restarted quorumd, so bringBackAfter retries until quorumd answers or a signal interrupts it. Once the maintenance
// has been ended, an interrupt only ends the wait.
func (a *app) bringBackAfter(ctx context.Context, since time.Time, timeout time.Duration) error {
	ctx, stop := signal.NotifyContext(context.WithoutCancel(ctx), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	progress := a.newProgress(a.err)
	for {
		_, err := a.client().EndMaintenance(ctx)
		if err == nil {
			return a.bringBack(ctx, since, timeout, progress)
		}
		if isTransient(err) && ctx.Err() == nil {
			if err := progress.show(since, "safe", "quorumd does not answer", nil); err != nil {
				return err
			}
			select {
			case <-time.After(time.Second):
				continue
			case <-ctx.Done():
			}
		}
		if err := progress.end(); err != nil {
			return err
		}
		f := &failure{
			code: exitFault, message: "cannot bring this host back: " + err.Error(),
			hint: "this host stays in maintenance; to end it: quorumctl maintenance off",
		}
		if e, ok := errors.AsType[*control.Error](err); ok {
			f.code, f.message = exitCode(e), "cannot bring this host back: "+e.Message
		}
		return f
	}
}
