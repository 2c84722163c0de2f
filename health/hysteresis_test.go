// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"
	"time"
)

func TestARecoveringFindingKeepsTheTextOfTheFault(t *testing.T) {
	t.Parallel()
	for code, how := range map[Code]struct {
		spoil func(*bench)
		bad   time.Duration
		text  string
	}{
		MemoryLow: {
			func(b *bench) { b.machine.MemoryAvailable = known(4) }, 2 * time.Minute,
			"4 % of the memory is available, limit 10 %",
		},
		EtcdAlarm: {
			func(b *bench) { b.etcd.Alarms, b.etcd.Errors = known(1), []string{"alarm:NOSPACE"} }, time.Minute,
			"etcd reports: alarm:NOSPACE",
		},
		NetworkOneWay: {
			func(b *bench) { b.network = network("n1>n3 lost") }, 2 * time.Minute,
			"n1 cannot reach n3, but n3 reaches n1",
		},
		FileSystemReadOnly: {
			func(b *bench) { b.devices.FileSystem.ReadOnly = known(1) }, time.Minute,
			"the ext4 file system of etcd's data is read-only",
		},
		HardwareAlarm: {
			func(b *bench) {
				b.hardware.Sensors.Known = true
				b.hardware.Sensors.All = []Sensor{{Of: "it87", Label: "fan1", Alarm: true}}
			}, 3 * time.Minute, "it87 fan1",
		},
	} {
		b := newBench(t, DefaultThresholds())
		b.member = true
		b.each(10*time.Minute, ms)
		machine, etcd, devices, hardware, network := b.machine, b.etcd, b.devices, b.hardware, b.network
		how.spoil(b)
		b.each(how.bad, ms)
		if got := b.found(code); got != how.text {
			t.Errorf("found %q, want %q", got, how.text)
		}
		b.machine, b.etcd, b.devices, b.hardware, b.network = machine, etcd, devices, hardware, network
		b.each(10*time.Second, ms)
		if got := b.found(code); got != how.text+", until just now" {
			t.Errorf("recovering: %q", got)
		}
		b.reborn() // the bad reading was before the restart
		b.each(10*time.Second, ms)
		if got := b.found(code); got != how.text+", until just now" {
			t.Errorf("after a restart: %q", got)
		}
		b.each(10*time.Minute, ms)
		if got := b.found(code); got != "" {
			t.Errorf("after ten minutes: %q", got)
		}
		for _, s := range b.result.Checks {
			if s.State == OK && len(s.Text) > 15 && s.Text[len(s.Text)-15:] == ", until just now" {
				t.Errorf("a healthy check says %q", s.Text)
			}
		}
	}
}
