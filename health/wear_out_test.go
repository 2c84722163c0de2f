// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"
	"testing"
	"time"
)

// wearing returns the hardware with a drive at this age and wear.
func wearing(hours, used int) HardwareReading {
	return driven(func(d *Drive) { d.Serial, d.Hours, d.Used = "W1", &hours, &used })
}

// wear lets the drive age by the given power-on hours, during which its wear rises by the given number of steps.
func (b *bench) wear(hours, steps int) {
	d := b.hardware.Drives.All[0]
	age, used := *d.Hours, *d.Used
	b.look()
	for i := range steps {
		b.now++
		b.hardware = wearing(age+hours*(i+1)/steps, used+i+1)
		b.look()
	}
}

func wearEdges() []edge {
	almost := func(b *bench) {
		b.hardware = wearing(9000, 87)
		b.wear(9, 1)
		b.wear(480, 2)
	}
	worn := func(b *bench) { b.hardware = wearing(9000+9+720, 91); b.each(time.Second, quiet) }
	return []edge{
		{"the rated endurance of a drive under etcd's data will be used up within", almost, worn},
		{
			"no drive under etcd's data will use up",
			func(b *bench) {
				almost(b)
				worn(b)
				b.hardware = wearing(9000, 4)
				b.each(drivesFor-time.Second, quiet)
			},
			func(b *bench) { b.each(time.Second, quiet) },
		},
	}
}

func TestADriveThatWearsOutWithinMonthsIsFoundAtTheRateOfTheLastMonth(t *testing.T) {
	t.Parallel()
	const soon = "nvme0 (W1): 91 % of its rated endurance is used, 3 percentage points more than 30 days of " +
		"operation ago; at this rate, all of it will be used in 90 days, limit 90 days"
	for what, c := range map[string]struct {
		lives func(*bench)
		want  string
	}{
		"90 days left": {
			func(b *bench) { b.hardware = wearing(9000, 87); b.wear(9, 1); b.wear(720, 3) }, soon,
		},
		"100 days left": {
			func(b *bench) { b.hardware = wearing(9000, 86); b.wear(9, 1); b.wear(720, 3) }, "",
		},
		"the first step begins it": {func(b *bench) { b.hardware = wearing(9000, 92); b.wear(90, 3) }, ""},
		"a jump is only one step": {
			func(b *bench) { b.hardware = wearing(9000, 50); b.look(); b.hardware = wearing(9100, 95) }, "",
		},
		"a correction within two days": {func(b *bench) { b.hardware = wearing(9000, 50); b.wear(48, 9) }, ""},
		"steps of more than 30 days ago": {
			func(b *bench) { b.hardware = wearing(9000, 80); b.wear(9, 1); b.wear(900, 3) }, "",
		},
		"nothing more is written": {
			func(b *bench) {
				b.hardware = wearing(9000, 87)
				b.wear(9, 1)
				b.wear(400, 3)
				b.hardware = wearing(9000+9+725, 91)
			}, "",
		},
		"it is worn out, which another check reports": {
			func(b *bench) { b.hardware = wearing(9000, 97); b.wear(9, 1); b.wear(400, 3) }, "",
		},
		"its age is unknown": {
			func(b *bench) {
				b.hardware = wearing(9000, 87)
				b.wear(9, 1)
				b.wear(720, 3)
				b.hardware.Drives.All[0].Hours = nil
			}, "",
		},
		"a different drive replaces it": {
			func(b *bench) {
				b.hardware = wearing(9000, 87)
				b.wear(9, 1)
				b.wear(720, 3)
				b.hardware.Drives.All[0].Serial = "W2"
			}, "",
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := withChecks(t)
			c.lives(b)
			b.each(drivesFor+time.Second, ms)
			if got := b.found(DriveWearsOut); got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
			if b.result.State != OK {
				t.Errorf("the health is %s", b.result.State)
			}
		})
	}
}

func TestTheWearOfADriveIsRememberedAcrossAReboot(t *testing.T) {
	t.Parallel()
	b := withChecks(t)
	b.hardware = wearing(9000, 87)
	b.wear(9, 1)
	b.wear(480, 2)
	data, err := b.j.History()
	if err != nil {
		t.Fatal(err)
	}
	h, err := DecodeHistory(data)
	if err != nil {
		t.Fatal(err)
	}
	after := withChecks(t)
	after.j.UseHistory(h)
	after.hardware = b.hardware
	after.wear(240, 1)
	after.each(time.Second, ms)
	if after.found(DriveWearsOut) == "" {
		t.Errorf("the history is %+v", after.j.compared.history.Wear)
	}
}

func TestTheHistoryOfWearIsBounded(t *testing.T) {
	t.Parallel()
	var h History
	drive := func(n, hours, used int) Drive {
		return Drive{Serial: strings.Repeat("x", n+1), Hours: &hours, Used: &used}
	}
	var all []Drive
	for n := range MaxDisks {
		all = append(all, drive(n, 0, 0))
		for hours := range 2 * wearKept {
			h.wear(drive(n, hours, hours), all)
		}
	}
	if n := len(h.Wear[0].Steps); n != wearKept {
		t.Errorf("%d steps are kept", n)
	}
	next := drive(MaxDisks, 0, 0)
	h.wear(next, append(all, next))
	if len(h.Wear) != MaxDisks {
		t.Errorf("%d drives are kept", len(h.Wear))
	}
	h.wear(next, append(all[1:], next)) // the first drive has been removed
	if last := h.Wear[MaxDisks-1].Drive; len(h.Wear) != MaxDisks || last != next.identity() {
		t.Errorf("a new drive is not learned: %+v", h.Wear)
	}
	if data, err := h.Encode(); err != nil || len(data) > historyBytes {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

func TestAnImpossibleHistoryOfWearIsRefused(t *testing.T) {
	t.Parallel()
	step := `{"hours":1,"used":1},`
	for _, bad := range []string{
		`[{"drive":"a","used":256}]`, `[{"drive":"a","used":-1}]`, `[{"used":9,"steps":[{"hours":-1,"used":1}]}]`,
		`[{"used":9,"steps":[{"hours":1,"used":10}]}]`, `[{"used":9,"steps":[{"hours":1,"used":0}]}]`,
		`[{"used":9,"steps":[{"hours":2,"used":1},{"hours":1,"used":2}]}]`,
		`[{"used":9,"steps":[{"hours":1,"used":2},{"hours":2,"used":2}]}]`,
		`[{"used":9,"steps":[` + strings.Repeat(step, wearKept) + `{"hours":1,"used":1}]}]`,
		`[{"drive":"` + strings.Repeat("a", diskMost+1) + `"}]`, `[{},{},{},{},{},{},{},{},{}]`,
	} {
		if _, err := DecodeHistory([]byte(`{"version":1,"wear":` + bad + `}`)); err == nil {
			t.Errorf("it reads %.80s", bad)
		}
	}
	const good = `{"version":1,"wear":[{"drive":"a","used":9,"steps":[{"hours":7,"used":9}]}]}`
	if _, err := DecodeHistory([]byte(good)); err != nil {
		t.Error(err)
	}
}
