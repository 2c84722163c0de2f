// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/observe"
	"github.com/quorumd/quorumd/health"
)

func TestAHangingKernelDelaysNothingAndCountsWhenItAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 0, observe.UsualPace())
		defer f.close()
		answers := make(chan struct{})
		h := &fleetHost{f: f, name: "s1", files: map[string][]byte{}, sensors: func() health.MachineReading {
			<-answers
			return health.MachineReading{MemoryAvailable: health.Figure{Value: 3, Known: true}}
		}}
		f.hosts[h.name] = h
		h.boot("boot-s1")
		f.pass(time.Minute)
		before := h.agent.Status()
		f.pass(time.Minute)
		now := h.agent.Status()
		if now.Loop.Rounds <= before.Loop.Rounds || low(now) {
			t.Errorf("%d rounds, then %d; findings %+v", before.Loop.Rounds, now.Loop.Rounds, now.Health.Findings)
		}
		if !slices.ContainsFunc(now.Health.NotAvailable, func(a health.Absence) bool { return a.Check == "memory" }) {
			t.Errorf("not available: %+v", now.Health.NotAvailable)
		}
		close(answers)
		f.pass(3 * time.Minute)
		if s := h.agent.Status(); !low(s) {
			t.Errorf("the findings are %+v, not available %+v", s.Health.Findings, s.Health.NotAvailable)
		}
	})
}

func TestALostLinkIsReportedAndAHangingDriverDelaysNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 0, observe.UsualPace())
		defer f.close()
		answers := make(chan struct{})
		h := &fleetHost{f: f, name: "s1", files: map[string][]byte{}, links: func(context.Context) health.LinkReading {
			<-answers
			return health.LinkReading{Links: []health.Link{{Name: "eth0", Carrier: health.Figure{Known: true}}}}
		}}
		f.hosts[h.name] = h
		h.boot("boot-s1")
		f.pass(time.Minute)
		before := h.agent.Status().Loop.Rounds
		f.pass(time.Minute)
		if now := h.agent.Status().Loop.Rounds; now <= before {
			t.Errorf("%d rounds, then %d", before, now)
		}
		close(answers)
		f.pass(3 * time.Minute)
		found := h.agent.Status().Health.Findings
		if !slices.ContainsFunc(found, func(f control.Finding) bool { return f.Code == string(health.LinkDown) }) {
			t.Errorf("the findings are %+v", found)
		}
	})
}

func TestTheDevicesBelowTheDataAreShownAndAHangingOneDelaysNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 0, observe.UsualPace())
		defer f.close()
		hangs, end := make(chan struct{}), make(chan struct{})
		h := &fleetHost{f: f, name: "s1", files: map[string][]byte{}, devices: func(n uint64) health.DevicesReading {
			select {
			case <-hangs:
				<-end
			default:
			}
			if n != fleetDevice {
				return health.NotAvailable[health.DevicesReading]("another device")
			}
			return health.DevicesReading{Chain: []health.Device{
				{Name: "md0", Kind: "raid", On: []string{"sda"}},
				{
					Name: "sda", Kind: "disk", Serial: "Z1", Errors: health.Figure{Value: 2, Known: true},
					Traffic: health.Traffic{Known: true, Flushes: 4, FlushTime: 2 * time.Second},
				},
			}, Arrays: []health.Array{{Name: "md0", Level: "raid1", Missing: 1, Failed: []string{"sdb"}}}}
		}}
		f.hosts[h.name] = h
		h.boot("boot-s1")
		f.pass(time.Minute)
		if d := h.agent.Status().Health.Devices; len(d) != 2 || d[0].On[0] != "sda" || d[1].Serial != "Z1" ||
			d[0].Array.Failed[0] != "sdb" || *d[1].Errors != 2 || d[1].FlushSeconds != 0.5 {
			t.Errorf("the devices are %+v", d)
		}
		close(hangs)
		rounds := h.agent.Status().Loop.Rounds
		f.pass(3 * time.Minute)
		if s := h.agent.Status(); s.Loop.Rounds <= rounds || len(s.Health.Devices) > 0 {
			t.Errorf("%d rounds and then %d; the last devices are shown for ever: %+v", rounds, s.Loop.Rounds,
				s.Health.Devices)
		}
		close(end)
	})
}

func TestAFullDatabaseDiskIsFoundIfTheLogIsOnAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 0, observe.UsualPace())
		defer f.close()
		h := &fleetHost{f: f, name: "s1", files: map[string][]byte{}}
		h.database = func(log uint64) health.DatabaseReading {
			return health.DatabaseReading{Apart: log == fleetDevice, Free: 1 << 20, Total: 1 << 40}
		}
		f.hosts[h.name] = h
		h.boot("boot-s1")
		f.pass(time.Minute)
		found := h.agent.Status().Health.Findings
		if !slices.ContainsFunc(found, func(f control.Finding) bool {
			return f.Code == string(health.DatabaseSpaceLow) && f.Text == "1 MiB free for etcd's database, limit 1 GiB"
		}) {
			t.Errorf("the findings are %+v", found)
		}
	})
}

func low(s control.Status) bool {
	return slices.ContainsFunc(s.Health.Findings, func(f control.Finding) bool {
		return f.Code == string(health.MemoryLow)
	})
}

func TestASilentKernelIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 0, observe.UsualPace())
		defer f.close()
		silent, end := make(chan struct{}), make(chan struct{})
		h := &fleetHost{f: f, name: "s1", files: map[string][]byte{}, sensors: func() health.MachineReading {
			select {
			case <-silent:
				<-end
			default:
			}
			return health.MachineReading{MemoryAvailable: health.Figure{Value: 60, Known: true}}
		}}
		f.hosts[h.name] = h
		h.boot("boot-s1")
		f.pass(time.Minute)
		close(silent)
		f.pass(3 * time.Minute)
		if !slices.ContainsFunc(h.agent.Status().Health.NotAvailable, func(a health.Absence) bool {
			return a.Check == "memory" && a.Why == "kernel readings are out of date"
		}) {
			t.Errorf("not available: %+v", h.agent.Status().Health.NotAvailable)
		}
		close(end)
	})
}

func TestAMutedFindingIsReportedAgainAfterTheMuteHasExpired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 0, observe.UsualPace())
		defer f.close()
		h := &fleetHost{f: f, name: "s1", files: map[string][]byte{}, sensors: func() health.MachineReading {
			return health.MachineReading{MemoryAvailable: health.Figure{Value: 3, Known: true}}
		}}
		f.hosts[h.name] = h
		h.boot("boot-s1")
		f.pass(3 * time.Minute)
		_, err := h.agent.Mute(t.Context(), control.MuteRequest{
			Code: string(health.MemoryLow), Reason: "a test", For: control.Duration(time.Hour),
		}, "root")
		must(t, err)
		f.pass(10 * time.Second)
		h.die()
		h.boot("boot-s2") // mutes survive a reboot
		f.pass(3 * time.Minute)
		if s := h.agent.Status().Health; len(s.Mutes) != 1 || !s.Findings[len(s.Findings)-1].Muted ||
			!low(h.agent.Status()) {
			t.Errorf("the mutes are %+v, the findings %+v", s.Mutes, s.Findings)
		}
		f.pass(time.Hour)
		if s := h.agent.Status().Health; len(s.Mutes) != 0 || s.Findings[len(s.Findings)-1].Muted {
			t.Errorf("the mutes are %+v, the findings %+v", s.Mutes, s.Findings)
		}
		if hold, over := h.agent.files.Mutes(nil, time.Time{}); len(hold)+len(over) != 0 {
			t.Errorf("mutes %+v and %+v are kept", hold, over)
		}
	})
}

func TestAHangingDriveDelaysNothingElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 0, observe.UsualPace())
		defer f.close()
		silent, end := make(chan struct{}), make(chan struct{})
		worn := 103
		h := &fleetHost{
			f: f, name: "s1", files: map[string][]byte{},
			sensors: func() health.MachineReading {
				return health.MachineReading{MemoryAvailable: health.Figure{Value: 3, Known: true}}
			},
			hardware: func() health.HardwareReading {
				select {
				case <-silent:
					<-end
				default:
				}
				return health.HardwareReading{
					Drives: health.Several[health.Drive]{
						Known: true, All: []health.Drive{{Name: "nvme0", Used: &worn}},
					},
				}
			},
		}
		f.hosts[h.name] = h
		h.boot("boot-s1")
		f.pass(3 * time.Minute)
		has := func(s control.Status) bool {
			return slices.ContainsFunc(s.Health.Findings, func(f control.Finding) bool {
				return f.Code == string(health.DriveWorn)
			})
		}
		if s := h.agent.Status(); !has(s) || !low(s) {
			t.Errorf("the findings are %+v", s.Health.Findings)
		}
		close(silent)
		f.pass(10 * time.Minute)
		s := h.agent.Status()
		if has(s) || !low(s) || !slices.ContainsFunc(s.Health.NotAvailable, func(a health.Absence) bool {
			return a.Check == "smart" && a.Why == "drive health data is out of date"
		}) {
			t.Errorf("the findings are %+v, not available %+v", s.Health.Findings, s.Health.NotAvailable)
		}
		close(end)
	})
}

func TestAHangingSensorDoesNotHideItsDrivesFindings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 0, observe.UsualPace())
		defer f.close()
		silent, end := make(chan struct{}), make(chan struct{})
		worn := 4
		h := &fleetHost{
			f: f, name: "s1", files: map[string][]byte{},
			hardware: func() health.HardwareReading {
				drive := health.Drive{Name: "nvme0", Used: &worn}
				select {
				case <-silent:
					drive.Failed = true
				default:
				}
				return health.HardwareReading{Drives: health.Several[health.Drive]{
					Known: true, All: []health.Drive{drive},
				}}
			},
			chips: func() health.Several[health.Sensor] {
				select {
				case <-silent:
					<-end
				default:
				}
				return health.Several[health.Sensor]{Known: true, All: []health.Sensor{{Of: "fans", Label: "fan1"}}}
			},
		}
		f.hosts[h.name] = h
		h.boot("boot-s1")
		f.pass(3 * time.Minute)
		if n := h.agent.publisher.Current().Hung; n != 0 {
			t.Errorf("before, %d measurements hang", n)
		}
		close(silent)
		f.pass(10 * time.Minute)
		if n := h.agent.publisher.Current().Hung; n != 1 {
			t.Errorf("%d measurements hang, want only that of the sensors", n)
		}
		s := h.agent.Status().Health
		failing := func(f control.Finding) bool { return f.Code == string(health.DriveFailing) }
		if !slices.ContainsFunc(s.Findings, failing) ||
			!slices.ContainsFunc(s.NotAvailable, func(a health.Absence) bool {
				return a.Check == "alarms" && a.Why == "sensor readings are out of date"
			}) {
			t.Errorf("the findings are %+v, not available %+v", s.Findings, s.NotAvailable)
		}
		close(end)
	})
}

func TestDisabledFlushesAreReportedUnlessAnOperatorVouchesForTheCache(t *testing.T) {
	t.Parallel()
	for _, protected := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, 0, observe.UsualPace())
			defer f.close()
			h := &fleetHost{
				f: f, name: "s1", files: map[string][]byte{}, protectedCache: protected,
				devices: func(uint64) health.DevicesReading {
					return health.DevicesReading{
						Chain:      []health.Device{{Name: "sda", Kind: "disk"}},
						FileSystem: health.FileSystem{Type: "ext4", Unsafe: "nobarrier"},
					}
				},
			}
			f.hosts[h.name] = h
			h.boot("boot-s1")
			f.pass(time.Minute)
			found := slices.ContainsFunc(h.agent.Status().Health.Findings, func(f control.Finding) bool {
				return f.Code == string(health.FlushesDisabled)
			})
			if found == protected {
				t.Errorf("protected %t: found %t", protected, found)
			}
		})
	}
}
