// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"
	"testing"
	"time"
)

func TestADeviceThatMayAcknowledgeEarlyIsFoundWithTheReason(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		spoil  func(*DevicesReading)
		direct time.Duration
		want   string // empty if nothing is suspected
	}{
		"a drive with a cache that is flushed": {func(*DevicesReading) {}, 300 * time.Microsecond, ""},
		"flushes faster than any bus": {
			func(*DevicesReading) {}, 9 * time.Microsecond, "300 writes with a flush",
		},
		"as fast, no flush needed": {
			func(d *DevicesReading) { d.Chain[1].Cache = "write through" }, 9 * time.Microsecond, "",
		},
		"as fast, cache mode unknown": {
			func(d *DevicesReading) { d.Chain[2].Cache = "" }, 9 * time.Microsecond, "",
		},
		"a disk in memory": {func(d *DevicesReading) { d.Chain[1].Kind = "memory" }, ms, "sda is in memory"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, DefaultThresholds())
			b.member = true
			b.devices.Chain[1].Cache, b.devices.Chain[2].Cache = "write back", "write back"
			b.each(10*time.Minute, ms)
			c.spoil(&b.devices)
			b.each(11*time.Minute, c.direct)
			got := b.found(DurabilityDoubtful)
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
			if b.result.State != OK {
				t.Errorf("a suspicion makes the health %s", b.result.State)
			}
		})
	}
}
