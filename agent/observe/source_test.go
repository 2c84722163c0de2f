// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumd/quorumd/health"
)

func TestAHangingReadingDoesNotBlockTheLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, hangs, end := time.Now(), false, make(chan struct{})
		now := func() time.Duration { return time.Since(began) + time.Hour }
		reads := 0
		source := DeviceReading(10*time.Second, "it does not respond",
			func(in *health.Input) *health.DatabaseReading { return &in.Database },
			func(log uint64) health.DatabaseReading {
				if reads++; hangs {
					<-end
				}
				return health.DatabaseReading{Apart: true, Free: log, Total: 100}
			})
		fill := func(device uint64) health.DatabaseReading {
			at := time.Now()
			in := health.Input{Database: health.DatabaseReading{Free: 3}}
			source.fill(t.Context(), now, device, &in)
			if waited := time.Since(at); waited > 0 {
				t.Errorf("a round waited for %s", waited)
			}
			synctest.Wait()
			return in.Database
		}
		if seen := fill(0); reads > 0 || seen.Free != 3 {
			t.Errorf("%d reads before the probe reported its device, %+v", reads, seen)
		}
		if seen := fill(7); seen.Free != 3 {
			t.Errorf("%+v before the first reading", seen)
		}
		for range 10 {
			time.Sleep(time.Second) //nolint:forbidigo // virtual time
			if seen := fill(7); seen.Free != 7 {
				t.Errorf("got %+v", seen)
			}
		}
		if reads != 2 {
			t.Errorf("%d reads in 10 s, want 2", reads)
		}
		hangs = true
		var seen health.DatabaseReading
		for range 180 {
			time.Sleep(time.Second) //nolint:forbidigo // virtual time
			seen = fill(7)
		}
		if seen.Absent != "it does not respond" || seen.Devices.Absent != seen.Absent || seen.Total != 0 || reads != 3 {
			t.Errorf("while the third of %d reads hangs: %+v", reads, seen)
		}
		if !source.hung(now()) {
			t.Error("not counted as a hung read")
		}
		close(end)
	})
}
