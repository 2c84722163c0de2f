// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os/exec"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/systemd"
)

// bootWarning returns a warning if systemd does not start etcd's unit at boot, otherwise "". quorumd does not start
// etcd after a boot.
func bootWarning(ctx context.Context, c config.Config) string {
	if c.Etcd.Runner != config.RunnerSystemd {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	// The error is ignored, because the exit status is nonzero for a disabled unit.
	out, _ := exec.CommandContext(ctx, "systemctl", "is-enabled", c.Etcd.Unit).Output()
	state := systemd.Status{UnitFileState: strings.TrimSpace(string(out))}
	if !state.NotAtBoot() {
		return ""
	}
	return c.Etcd.Unit + " is " + state.UnitFileState + ", so etcd does not start at boot: systemctl enable " +
		c.Etcd.Unit
}
