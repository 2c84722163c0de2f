// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// A host with a hung disk could not renew the lock and would acquire it again each time it expires.
func TestAHostWithAHungDiskTakesNoLock(t *testing.T) {
	t.Parallel()
	hanging := func(change func(v *View)) func(v *View) {
		return func(v *View) {
			v.Health = Health{State: health.Stalled, Hangs: true, Text: "wal write+sync in flight for 3 s"}
			change(v)
		}
	}
	free := func(v *View) { v.Lock = Lock{Known: true} }
	play(t, joinView, []scene{
		{"to continue its join", hanging(free), StepNone, HealthBad},
		{"to roll its join back", hanging(func(v *View) { free(v); v.Op.Phase = PhaseRollback }), StepNone, HealthBad},
		{"to roll another host's join back", hanging(func(v *View) {
			free(v)
			v.Self.ID, v.Self.PeerURL, v.Op.OrphanedFor = "n1", peerPrefix+"n1", time.Hour
		}), StepNone, HealthBad},
		{"it has the lock already", hanging(func(*View) {}), StepRollBack, ""},
		{"the disk has answered again", func(v *View) {
			free(v)
			v.Health.State, v.Op.Phase = health.Slow, PhaseRollback
		}, StepTakeLock, ""},
	})
}
