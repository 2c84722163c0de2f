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

// bootsWithin is how long the end waits for the note that the agent was told to end.
const bootsWithin = time.Second

// boots are those of this machine, as the health checks want them.
type boots struct {
	noted *hoststate.Boots
	wall  func() time.Time
}

// notedBoots opens what is noted and notes, beside the caller, that the agent runs.
func notedBoots(state, bootID string, wall func() time.Time, log *slog.Logger) boots {
	b := boots{hoststate.OpenBoots(hoststate.HostFiles{}, state, bootID, wall().Add(-sinceBoot())), wall}
	go func() {
		if err := b.noted.Begin(); err != nil {
			log.Warn("unexpected reboots are not detected", "error", err)
		}
	}()
	return b
}

// end notes that the agent was told to end, by the end of told, unless the disk does not answer.
func (b boots) end(told context.Context, log *slog.Logger) {
	if told.Err() == nil {
		return // it ends for a reason of its own
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(told), bootsWithin)
	defer cancel()
	if err := hoststate.Within(ctx, b.noted.End); err != nil {
		log.Warn("the next boot will be reported as unexpected", "error", err)
	}
}

// beside adds what is known of the boots to what the kernel tells.
func (b boots) beside(read func() health.MachineReading) func() health.MachineReading {
	return func() health.MachineReading {
		out, now := read(), b.wall()
		all, _ := b.noted.Since(now.Add(-health.BootLoopSpan))
		_, unexpected := b.noted.Since(now.Add(-health.UnexpectedSpan))
		out.Boots = health.Figure{Value: float64(all), Known: true}
		out.BootsUnexpected = health.Figure{Value: float64(unexpected), Known: true}
		return out
	}
}
