// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"log/slog"
	"time"

	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/health"
)

// bootsWithin is how long a stopping agent waits for its record of the stop request to reach the disk.
const bootsWithin = time.Second

// boots records the boots of this machine for the health checks.
type boots struct {
	noted *hoststate.Boots
	wall  func() time.Time
}

// openBoots opens the record of boots. In the background, it records that the agent is running.
func openBoots(state, bootID string, wall func() time.Time, log *slog.Logger) boots {
	b := boots{hoststate.OpenBoots(hoststate.HostFiles{}, state, bootID, wall().Add(-sinceBoot())), wall}
	go func() {
		if err := b.noted.Begin(); err != nil {
			log.Warn("unexpected reboots are not detected", "error", err)
		}
	}()
	return b
}

// end records that the agent was asked to stop, if the context stop has ended. It waits at most bootsWithin, even if
// the disk hangs.
func (b boots) end(stop context.Context, log *slog.Logger) {
	if stop.Err() == nil {
		return // the agent was not asked to stop; it ends for a different reason
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(stop), bootsWithin)
	defer cancel()
	if err := hoststate.Within(ctx, b.noted.End); err != nil {
		log.Warn("the next boot will be reported as unexpected", "error", err)
	}
}

// with adds the recorded boots to the kernel's reading.
func (b boots) with(out health.MachineReading) health.MachineReading {
	now := b.wall()
	all, _ := b.noted.Since(now.Add(-health.BootLoopSpan))
	_, unexpected := b.noted.Since(now.Add(-health.UnexpectedSpan))
	out.Boots = health.Figure{Value: float64(all), Known: true}
	out.BootsUnexpected = health.Figure{Value: float64(unexpected), Known: true}
	return out
}
