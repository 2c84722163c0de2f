// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"os"
	"os/exec"
	"syscall"
)

// ChildMain launches Main as a child of the agent that outlives it. wanted is the directory in which it is told what is
// to be run, command gives the command line for a time; what the programs write goes where the agent's own log goes.
func ChildMain(wanted string, command func(when string) []string) Launch {
	return func(_ context.Context, run Run) error {
		if err := Note(wanted, run); err != nil {
			return err
		}
		argv := command(run.When)
		c := exec.Command(argv[0], argv[1:]...) // no context: it goes on without the agent
		c.Stdout, c.Stderr = os.Stderr, os.Stderr
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			return err
		}
		go func() { _ = c.Wait() }() // how it went stands in its outcome
		return nil
	}
}
