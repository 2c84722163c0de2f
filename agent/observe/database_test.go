// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumd/quorumd/health"
)

func TestHangingDatabaseFileSystemDoesNotBlockTheLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, hangs, end := time.Now(), false, make(chan struct{})
		now := func() time.Duration { return time.Since(began) + time.Hour }
		looks := 0
		j := &judge{
			now: now,
			opt: Options{Now: now, Sources: Sources{Database: func(log uint64) health.DatabaseReading {
				if looks++; hangs {
					<-end
				}
				return health.DatabaseReading{Apart: true, Free: log, Total: 100}
			}}},
		}
		turn := func(log uint64) health.DatabaseReading {
			at := time.Now()
			seen := j.database(t.Context(), log)
			if waited := time.Since(at); waited > 0 {
				t.Errorf("a round waited for %s", waited)
			}
			synctest.Wait()
			return seen
		}
		unknown := func(d health.DatabaseReading) bool { return (d.Apart || d.Absent != "") && d.Total == 0 }
		if !unknown(turn(0)) || looks > 0 {
			t.Errorf("%d looks before the probe reported its device", looks)
		}
		if !unknown(turn(7)) {
			t.Error("known before the first look")
		}
		for range 10 {
			time.Sleep(time.Second) //nolint:forbidigo // virtual time
			if seen := turn(7); seen.Free != 7 {
				t.Errorf("got %+v", seen)
			}
		}
		if looks != 2 {
			t.Errorf("%d looks in 10 s, want 2", looks)
		}
		hangs = true
		var seen health.DatabaseReading
		for range 180 {
			time.Sleep(time.Second) //nolint:forbidigo // virtual time
			seen = turn(7)
		}
		if !unknown(seen) || seen.Absent == "" || seen.Devices.Absent != seen.Absent || looks != 3 {
			t.Errorf("while the third of %d looks hangs: %+v", looks, seen)
		}
		if !j.databases.Hung(now()) {
			t.Error("not counted as a hanging look")
		}
		close(end)
	})
}

func TestDatabaseIsNotReadSeparatelyWithoutAWALDirectory(t *testing.T) {
	t.Parallel()
	if seen := new(judge).database(t.Context(), 7); seen.Apart {
		t.Errorf("got %+v", seen)
	}
}
