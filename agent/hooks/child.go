// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"os"
	"os/exec"
	"syscall"
)

// AsChild returns a Launch that starts a Runner in a child process, which outlives the agent. The child reads the
// request from the directory requests; command returns the child's command line. The child's output goes to the agent's
// log.
func AsChild(requests string, command func(when string) []string) Launch {
	return func(_ context.Context, run Run) error {
		if err := WriteRequest(requests, run); err != nil {
			return err
		}
		argv := command(run.When)
		c := exec.Command(argv[0], argv[1:]...) // no context: the child must outlive the agent
		c.Stdout, c.Stderr = os.Stderr, os.Stderr
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			return err
		}
		go func() { _ = c.Wait() }() // the child reports the result in its outcome
		return nil
	}
}
