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

// notAtBoot warns of a unit that is not enabled. quorumd starts no etcd that has not failed, after a boot least of all.
func notAtBoot(ctx context.Context, c config.Config) string {
	if c.Etcd.Runner != config.RunnerSystemd {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	// it fails for one that is not, too
	said, _ := exec.CommandContext(ctx, "systemctl", "is-enabled", c.Etcd.Unit).Output()
	state := systemd.Status{UnitFileState: strings.TrimSpace(string(said))}
	if !state.NotAtBoot() {
		return ""
	}
	return c.Etcd.Unit + " is " + state.UnitFileState + ": after a boot nothing starts etcd; systemctl enable " +
		c.Etcd.Unit
}
