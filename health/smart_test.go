// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

func percent(n int) *int { return &n }

// wellDrive returns a healthy NVMe drive with a few old errors.
func wellDrive() Drive {
	return Drive{
		Name: "nvme0", Model: "M", Serial: "S1", Firmware: "1", Hours: percent(9000), Warns: true,
		Spare: percent(100), SpareLimit: percent(10),
		Used: percent(4), HotMinutes: percent(30),
		Errors: []DriveErrors{{"media errors", 2}},
	}
}

// wellHardware returns healthy hardware with all readings.
func wellHardware() HardwareReading {
	return HardwareReading{
		Drives: Several[Drive]{Known: true, All: []Drive{wellDrive()}},
		Sensors: Several[Sensor]{Known: true, All: []Sensor{
			{Of: "nvme0", Label: "Composite", Drive: true, Celsius: 40, Limit: 80},
			{Of: "coretemp", Label: "temp1_crit_alarm"},
		}},
		Logged: Several[LoggedErrors]{Known: true, All: []LoggedErrors{{Device: "sda", Errors: 1}, {Device: "sdz"}}},
		Time:   wellTime(),
	}
}

// driven returns hardware with a modified drive.
func driven(spoil func(*Drive)) HardwareReading {
	h := wellHardware()
	spoil(&h.Drives.All[0])
	return h
}

// heated returns hardware with a drive at the given temperature.
func heated(celsius float64) HardwareReading {
	h := wellHardware()
	h.Sensors.All[0].Celsius = celsius
	return h
}

// someHardware returns random readings of drives and sensors.
func someHardware(chance func(percent int) bool) HardwareReading {
	h := wellHardware()
	d := &h.Drives.All[0]
	if chance(10) {
		d.Warnings = 1 << 4
	}
	if chance(10) {
		d.HotMinutes = percent(31)
	}
	if chance(10) {
		doomed(24)(d)
	}
	if chance(10) {
		doomed(80 * 24)(d)
	}
	if chance(10) {
		d.Used = percent(101)
	}
	if chance(10) {
		d.Errors[0].N++
	}
	if chance(30) {
		h.Sensors.All[0].Celsius = 90
	}
	h.Sensors.All[1].Alarm = chance(50)
	if chance(10) {
		h.Logged.All[0].Resets = 3
	}
	if chance(80) { // likely, because the finding needs five such minutes
		h.Time.SinceUpdate = 3 * time.Hour
	}
	if chance(10) {
		h.Drives = Several[Drive]{Absent: "smartctl is not installed"}
	}
	return h
}

func driveEdges() []edge {
	set := func(h HardwareReading, span time.Duration) func(b *bench) {
		return func(b *bench) { b.hardware = h; b.each(span, quiet) }
	}
	then := func(first, second func(b *bench)) func(b *bench) {
		return func(b *bench) { first(b); second(b) }
	}
	const second, minute = time.Second, time.Minute
	well := wellHardware()
	warned := driven(func(d *Drive) { d.Warnings = 1 << 2 })
	used := func(n int) HardwareReading { return driven(func(d *Drive) { d.Used = &n }) }
	alarmed := wellHardware()
	alarmed.Sensors.All[1].Alarm = true
	grown := driven(func(d *Drive) { d.Errors = []DriveErrors{{"media errors", 3}} })
	return []edge{
		{
			"a drive reports failure or a", set(driven(func(d *Drive) { d.Warnings = warningHeat }), minute),
			set(warned, second),
		},
		{
			"no drive reports failure or a",
			then(set(warned, second), set(well, drivesFor-second)), set(well, second),
		},
		{
			"the capacitors of a drive", set(warned, minute),
			set(driven(func(d *Drive) { d.Warnings = warningCapacitor }), second),
		},
		{
			"no drive under etcd's data reports failed capacitors",
			then(set(driven(func(d *Drive) { d.Warnings = warningCapacitor }), second), set(well, drivesFor-second)),
			set(well, second),
		},
		{"a drive's spare blocks", set(used(99), minute), set(used(100), second)},
		{"every drive has spare blocks", then(set(used(100), second), set(well, drivesFor-second)), set(well, second)},
		{"a drive reports new errors", set(well, minute), set(grown, second)},
		{
			"no drive reports new errors",
			then(set(grown, second), func(b *bench) { b.now += driveErrorsSpan - second; b.look() }),
			set(grown, second),
		},
		{
			"a drive exceeds its own temperature limit,", then(set(heated(80), minute), set(heated(81), minute-second)),
			set(heated(81), second),
		},
		{
			"every drive that was too hot",
			then(set(heated(76), minute), set(heated(75), drivesFor-second)), set(heated(75), second),
		},
		{"a sensor raises an alarm", then(set(well, minute), set(alarmed, alarmFor-second)), set(alarmed, second)},
		{"no sensor raises an alarm", then(set(alarmed, minute), set(well, alarmWell-second)), set(well, second)},
	}
}

func TestAFaultOfADriveIsNamedWithItsNumberAndLimit(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		drive func(*Drive)
		code  Code
		text  string
	}{
		"its spare blocks are running out": {
			func(d *Drive) { d.Warnings, d.Failed, d.Spare = 1, true, percent(3) }, DriveFailing,
			"nvme0 (S1): its spare blocks are running out (critical warning 0x01, limit 0)",
		},
		"it is read-only": {
			func(d *Drive) { d.Warnings, d.Failed = 8, true }, DriveFailing,
			"nvme0 (S1): it is read-only (critical warning 0x08, limit 0)",
		},
		"it is unreliable, read-only and hot": {
			func(d *Drive) { d.Warnings, d.Failed = 0x0e, true }, DriveFailing,
			"nvme0 (S1): its reliability is degraded and it is read-only (critical warning 0x0e, limit 0)",
		},
		"its capacitors failed, not under etcd's data": {
			func(d *Drive) { d.Name, d.Warnings = "nvme9", 16 }, DriveFailing,
			"nvme9 (S1): its capacitors have failed: a power cut loses writes (critical warning 0x10, limit 0)",
		},
		"its self-assessment failed": {
			func(d *Drive) { d.Failed = true }, DriveFailing, "nvme0 (S1): its SMART self-assessment is FAILED",
		},
		"an unknown bit": {
			func(d *Drive) { d.Warnings, d.Failed = 1<<7, true }, DriveFailing,
			"nvme0 (S1): unknown warning (critical warning 0x80, limit 0)",
		},
		"few spare blocks": {
			func(d *Drive) { d.Spare = percent(9) }, DriveWorn,
			"nvme0 (S1): 9 % of its spare blocks are left, limit 10 %",
		},
		"more than its life": {
			func(d *Drive) { d.Used = percent(140) }, DriveWorn,
			"nvme0 (S1): 140 % of its rated endurance is used, limit 100 %",
		},
		"new errors": {
			func(d *Drive) { d.Errors[0].N = 5 }, DriveErrorsGrown,
			"nvme0 (S1): 3 more media errors in a week, limit 0",
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := withChecks(t)
			b.hardware = driven(c.drive)
			b.each(2*time.Second, ms)
			b.finds(c.code)
			b.advises(c.text)
			if b.result.State != OK {
				t.Errorf("got %s", b.result.State)
			}
		})
	}
}

// advises checks the text of the first finding.
func (b *bench) advises(text string) {
	b.t.Helper()
	if len(b.result.Findings) == 0 || b.result.Findings[0].Text != text {
		b.t.Errorf("the findings are %+v, want %q", b.result.Findings, text)
	}
}

func TestManyBadDrivesAreCountedAndAFewNamed(t *testing.T) {
	t.Parallel()
	b := withChecks(t)
	b.hardware.Drives.All = nil
	for i := range 5 {
		b.hardware.Drives.All = append(b.hardware.Drives.All, Drive{Name: fmt.Sprintf("sd%d", i), Failed: true})
	}
	b.each(time.Second, ms)
	b.finds(DriveFailing)
	text := b.result.Findings[0].Text
	if strings.Count(text, "FAILED") != 3 || !strings.HasSuffix(text, "; and 2 more") {
		t.Errorf("got %q", text)
	}
}

func TestASilentDriveIsNeitherHealthyNorUnhealthy(t *testing.T) {
	t.Parallel()
	b := withChecks(t)
	b.hardware = driven(func(d *Drive) { d.Absent, d.Failed, d.Used = "behind a RAID controller", true, percent(200) })
	b.each(time.Minute, ms)
	b.finds()
	want := []Absence{{"smart", Machine, "nvme0: behind a RAID controller"}}
	if fmt.Sprint(b.result.NotAvailable) != fmt.Sprint(want) {
		t.Errorf("not available: %+v", b.result.NotAvailable)
	}
	for range 4 {
		b.hardware.Drives.All = append(b.hardware.Drives.All, Drive{Name: "sda", Absent: "behind it, too"})
	}
	b.each(time.Second, ms)
	if all := b.result.NotAvailable; len(all) != 4 || all[3].Why != "2 drives more" {
		t.Errorf("with several, not available: %+v", all)
	}
}

func TestMissingDriveReadingsAreReportedOnceForAllChecks(t *testing.T) {
	t.Parallel()
	b := withChecks(t)
	b.hardware.Drives = Several[Drive]{Absent: "smartctl is not installed"}
	b.each(time.Minute, ms)
	b.finds()
	want := []Absence{{"smart", Machine, "smartctl is not installed"}}
	if fmt.Sprint(b.result.NotAvailable) != fmt.Sprint(want) {
		t.Errorf("not available: %+v", b.result.NotAvailable)
	}
}

func TestADriveWithoutAThermometerIsHotIfItWarns(t *testing.T) {
	t.Parallel()
	b := withChecks(t)
	b.hardware = driven(func(d *Drive) { d.Warnings, d.Failed = warningHeat, true })
	b.each(2*time.Minute, ms) // the normal reading of its thermometer takes precedence
	b.finds()
	b.hardware.Sensors = Several[Sensor]{Absent: "there is no hwmon"}
	b.each(2*time.Minute, ms)
	b.finds(DriveHot)
	b.advises("nvme0 (S1): it is too hot or too cold (critical warning 0x02, limit 0)")
}

func TestAnUnknownTemperatureIsNotAvailable(t *testing.T) {
	t.Parallel()
	want := []Absence{{"drive-heat", Machine, "no drive reports its temperature and its limit"}}
	for what, sensors := range map[string][]Sensor{
		"no thermometer":      wellHardware().Sensors.All[1:],
		"one without a limit": {{Of: "sda", Drive: true, Celsius: 99}, wellHardware().Sensors.All[1]},
	} {
		b := withChecks(t)
		b.hardware = driven(func(d *Drive) {
			d.Name, d.Warns, d.Capacitor = "sda", false, &CapacitorTest{100, 10}
		})
		b.hardware.Sensors.All = sensors
		b.each(2*time.Minute, ms)
		b.finds()
		if fmt.Sprint(b.result.NotAvailable) != fmt.Sprint(want) {
			t.Errorf("%s: not available: %+v", what, b.result.NotAvailable)
		}
	}
}

func TestAChipAlarmIsFoundUnlessItIsShort(t *testing.T) {
	t.Parallel()
	b := withChecks(t)
	b.hardware.Sensors.All[1].Alarm = true
	b.each(alarmFor-time.Second, ms)
	b.finds()
	b.each(2*time.Second, ms)
	b.finds(HardwareAlarm)
	b.advises("coretemp temp1_crit_alarm")
}

func TestChipsWithoutAlarmSupportAreNotAvailable(t *testing.T) {
	t.Parallel()
	b := withChecks(t)
	b.hardware.Sensors.All = b.hardware.Sensors.All[:1] // the temperature of a drive
	b.each(time.Minute, ms)
	want := []Absence{{"alarms", Machine, "no sensor supports alarms"}}
	if fmt.Sprint(b.result.NotAvailable) != fmt.Sprint(want) {
		t.Errorf("not available: %+v", b.result.NotAvailable)
	}
}

func TestAFindingCountsInstancesThatLastLongEnough(t *testing.T) {
	t.Parallel()
	b := withChecks(t)
	count := func() int {
		for _, f := range b.result.Findings {
			if f.Code == HardwareAlarm {
				return f.Count
			}
		}
		return 0
	}
	chip := b.hardware.Sensors.All[1]
	chip.Alarm = true
	b.hardware.Sensors.All = []Sensor{chip, wellHardware().Sensors.All[1]}
	b.each(2*alarmFor, ms)
	if count() != 1 {
		t.Fatalf("one alarm counts as %d", count())
	}
	b.hardware.Sensors.All = []Sensor{chip, chip}
	b.each(alarmFor-time.Second, ms)
	if count() != 1 {
		t.Errorf("with a short alarm: %d", count())
	}
	b.each(2*time.Second, ms)
	if count() != 2 {
		t.Errorf("two alarms count as %d", count())
	}
}

func TestErrorsOfADriveAreRememberedAcrossARestart(t *testing.T) {
	t.Parallel()
	b := withChecks(t)
	b.reborn()
	b.hardware = driven(func(d *Drive) { d.Errors[0].N = 9 }) // while the agent was down
	b.each(time.Second, ms)
	b.finds(DriveErrorsGrown)
	b.reborn()
	b.each(24*time.Minute, ms)
	b.finds(DriveErrorsGrown)
	b.advises("nvme0 (S1): 7 more media errors in a week, limit 0")
}

func TestImpossibleCountersAreRefused(t *testing.T) {
	t.Parallel()
	many := map[string]growth{}
	for i := range countersKept + 1 {
		many[fmt.Sprint(i)] = growth{Seen: true}
	}
	for what, kept := range map[string]map[string]growth{
		"more than":         many,
		"without a reading": {"sda": {}},
		"did not grow":      {"sda": {Seen: true, Marks: []mark{{1, -1}}}},
		"impossible":        {"sda": {Seen: true, Marks: []mark{{time.Hour, 1}}}},
	} {
		data, err := json.Marshal(kept)
		if err != nil {
			t.Fatal(err)
		}
		fresh := &counters{}
		if err := fresh.recall(data, time.Minute, time.Hour); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("want %q, got %v", what, err)
		}
	}
}

func TestASilentDriveHasNotRecovered(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	second := wellDrive()
	second.Name, second.Serial = "nvme1", "S2"
	failing := wellDrive()
	failing.Failed = true
	b.hardware.Drives.All = []Drive{failing, second}
	b.pass(2*time.Minute, ms)
	if text := b.found(DriveFailing); !strings.HasPrefix(text, "nvme0 (S1): ") {
		t.Fatalf("a failing drive: %q", text)
	}
	b.hardware.Drives.All = []Drive{{Name: "nvme0", Absent: "smartctl did not end"}, second}
	b.pass(time.Hour, ms)
	if text := b.found(DriveFailing); !strings.HasSuffix(text, ", and the drive no longer responds") {
		t.Errorf("silent: %q", text)
	}
	b.hardware.Drives.All = []Drive{wellDrive(), second}
	b.pass(time.Hour, ms)
	if text := b.found(DriveFailing); text != "" {
		t.Errorf("healthy again: %q", text)
	}
}
