// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// agentRun is one run of the agent: the boot in which it starts, and whether it exits cleanly.
type agentRun struct {
	id   string
	at   time.Time
	tidy bool
}

func TestABootIsUnannouncedIfThePreviousAgentDidNotEnd(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	ends := func(id string, minutes int) agentRun { return agentRun{id, at(minutes), true} }
	lost := func(id string, minutes int) agentRun { return agentRun{id, at(minutes), false} }
	for name, tc := range map[string]struct {
		lives            []agentRun
		all, unannounced int
	}{
		"the first boot":                   {[]agentRun{lost("a", 0)}, 1, 0},
		"a boot after a clean exit":        {[]agentRun{ends("a", 0), lost("b", 9)}, 2, 0},
		"a boot after a loss of power":     {[]agentRun{lost("a", 0), lost("b", 9)}, 2, 1},
		"a killed agent is no boot":        {[]agentRun{lost("a", 0), lost("a", 0)}, 1, 0},
		"agent restarted, then power lost": {[]agentRun{ends("a", 0), lost("a", 0), lost("b", 9)}, 2, 1},
		"earlier boots do not count":       {[]agentRun{lost("a", -90), lost("b", -80), ends("c", 9)}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var b *Boots
			for _, l := range tc.lives {
				b = OpenBoots(HostFiles{}, dir, l.id, l.at)
				if err := b.Begin(); err != nil {
					t.Fatal(err)
				}
				if l.tidy {
					if err := b.End(); err != nil {
						t.Fatal(err)
					}
				}
			}
			if all, unannounced := b.Since(noon.Add(-time.Hour)); all != tc.all || unannounced != tc.unannounced {
				t.Errorf("%d boots, %d of them unannounced; want %d and %d", all, unannounced, tc.all, tc.unannounced)
			}
		})
	}
}

func TestBootsAreBoundedAndAnUnreadableFileCountsAsEmpty(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, bootsName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	all, unannounced := OpenBoots(HostFiles{}, dir, "a", now).Since(now.Add(-time.Hour))
	if all != 1 || unannounced != 0 {
		t.Errorf("%d boots, %d of them unannounced; want 1 and 0", all, unannounced)
	}
	for i := range 2 * bootsKept {
		if err := OpenBoots(HostFiles{}, dir, fmt.Sprint(i), now).Begin(); err != nil {
			t.Fatal(err)
		}
	}
	if all, _ := OpenBoots(HostFiles{}, dir, "last", now).Since(now.Add(-time.Hour)); all != bootsKept {
		t.Errorf("%d boots are kept; the limit is %d", all, bootsKept)
	}
}
