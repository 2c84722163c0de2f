// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// pollEvery is the interval at which a condition is checked. Most conditions come true within seconds.
const pollEvery = 20 * time.Millisecond

// machine runs a command on the machine itself and returns its output.
func machine(ctx context.Context, stdin string, argv ...string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin = strings.NewReader(stdin)
	return output(cmd)
}

// output runs cmd and returns its standard output. The error includes the command and the end of its output.
func output(cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = 5 * time.Second // a child of the command may hold the pipes open
	err := cmd.Run()
	if err == nil {
		return stdout.String(), nil
	}
	output := strings.TrimSpace(stderr.String() + stdout.String())
	if len(output) > 2000 {
		output = "… " + output[len(output)-2000:]
	}
	return stdout.String(), fmt.Errorf("cannot run %q: %w: %s", strings.Join(cmd.Args, " "), err, output)
}

// until polls until cond holds or ctx ends; what describes the condition.
func until(ctx context.Context, what string, cond func() bool) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("gave up waiting until %s: %w", what, ctx.Err())
		}
	}
	return nil
}
