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

func TestAMachineThatStoppedWithoutAWordIsFoundAfterTheNextBoot(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	look := func(state, id string) health.MachineReading {
		kernel := func() health.MachineReading { return health.Silent("not here") }
		return boots{hoststate.OpenBoots(hoststate.HostFiles{}, state, id, time.Now()), time.Now}.beside(kernel)()
	}
	for name, tc := range map[string]struct {
		told bool
		want float64
	}{"told to end": {true, 0}, "not told": {false, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := t.TempDir()
			first := boots{hoststate.OpenBoots(hoststate.HostFiles{}, state, "a", time.Now()), time.Now}
			if err := first.noted.Begin(); err != nil {
				t.Fatal(err)
			}
			ctx, tell := context.WithCancel(t.Context())
			defer tell()
			if tc.told {
				tell()
			}
			first.end(ctx, log)
			got := look(state, "b")
			if got.Boots.Value != 2 || got.BootsUnexpected.Value != tc.want || !got.BootsUnexpected.Known {
				t.Errorf("%v boots, %v of them unexpected; want 2 and %v", got.Boots, got.BootsUnexpected, tc.want)
			}
		})
	}
}
