// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/health"
)

func TestAnUnexpectedRebootIsFoundAtTheNextBoot(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	look := func(state, id string) health.MachineReading {
		kernel := health.NotAvailable[health.MachineReading]("not here")
		return boots{hoststate.OpenBoots(hoststate.HostFiles{}, state, id, time.Now()), time.Now}.with(kernel)
	}
	for name, tc := range map[string]struct {
		asked bool
		want  float64
	}{"asked to stop": {true, 0}, "not asked": {false, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := t.TempDir()
			first := boots{hoststate.OpenBoots(hoststate.HostFiles{}, state, "a", time.Now()), time.Now}
			if err := first.noted.Begin(); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			if tc.asked {
				stop()
			}
			first.end(ctx, log)
			got := look(state, "b")
			if got.Boots.Value != 2 || got.BootsUnexpected.Value != tc.want || !got.BootsUnexpected.Known {
				t.Errorf("%v boots, %v of them unexpected; want 2 and %v", got.Boots, got.BootsUnexpected, tc.want)
			}
		})
	}
}
