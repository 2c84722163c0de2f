// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// TestAHostWhoseDiskHangsTakesNoLock: it would not renew it, and take it again whenever it has run out.
func TestAHostWhoseDiskHangsTakesNoLock(t *testing.T) {
	t.Parallel()
	hanging := func(change func(v *View)) func(v *View) {
		return func(v *View) {
			v.Health = Health{State: health.Stalled, Hangs: true, Text: "wal write+sync in flight for 3 s"}
			change(v)
		}
	}
	free := func(v *View) { v.Lock = Lock{Known: true} }
	play(t, joinView, []scene{
		{"to go on with its join", hanging(free), StepNone, HealthBad},
		{"to take its join back", hanging(func(v *View) { free(v); v.Op.Phase = PhaseRollback }), StepNone, HealthBad},
		{"to take another's join back", hanging(func(v *View) {
			free(v)
			v.Self.ID, v.Self.PeerURL, v.Op.OrphanedFor = "n1", peerPrefix+"n1", time.Hour
		}), StepNone, HealthBad},
		{"while it has the lock it uses it", hanging(func(*View) {}), StepRollBack, ""},
		{"once the disk has answered, it takes its join back", func(v *View) {
			free(v)
			v.Health.State, v.Op.Phase = health.Slow, PhaseRollback
		}, StepTakeLock, ""},
	})
}
