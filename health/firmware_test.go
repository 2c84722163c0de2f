// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"testing"
	"time"
)

// doomed returns a function that sets a drive's firmware to one that fails at 32768 power-on hours, with this many
// hours left.
func doomed(left int) func(*Drive) {
	return func(d *Drive) {
		hours := 32768 - left
		d.Model, d.Firmware, d.Hours = "HP VO0480JFDGT", "HPD3", &hours
	}
}

func firmwareEdges() []edge {
	set := func(left int, span time.Duration) func(*bench) {
		return func(b *bench) { b.hardware = driven(doomed(left)); b.each(span, quiet) }
	}
	then := func(first, second func(*bench)) func(*bench) {
		return func(b *bench) { first(b); second(b) }
	}
	const second, minute = time.Second, time.Minute
	return []edge{
		{"the firmware of a drive makes it fail", set(90*24+1, minute), set(90*24, second)},
		{
			"no drive has firmware that makes it fail",
			then(set(90*24, second), set(90*24+1, drivesFor-second)), set(90*24+1, second),
		},
		{"the firmware of a drive under etcd's data", set(7*24+1, minute), set(7*24, second)},
		{
			"no drive under etcd's data has firmware",
			then(set(7*24, second), set(7*24+1, drivesFor-second)), set(7*24+1, second),
		},
	}
}

func TestFirmwareThatMakesADriveFailIsFoundByExactModelAndRevision(t *testing.T) {
	t.Parallel()
	is := func(model, firmware string, hours int) func(*Drive) {
		return func(d *Drive) { d.Model, d.Firmware, d.Hours = model, firmware, &hours }
	}
	const ends = "nvme0 (S1): its firmware HPD3 makes it fail at 32768 power-on hours, "
	const fixed = "; fixed in HPD8 (HPE a00092491; known defects as of 2020-03-20)"
	for what, c := range map[string]struct {
		drive func(*Drive)
		code  Code
		want  string
	}{
		"90 days ahead": {
			is("HP VO0480JFDGT", "HPD3", 30608), FirmwareDefect,
			ends + "in 90 days of operation, limit 90 days" + fixed,
		},
		"91 days ahead": {is("HP VO0480JFDGT", "HPD3", 30607), "", ""},
		"a week ahead": {
			is("VO0480JFDGT", "HPD3", 32600), FirmwareDefectSoon,
			ends + "in 7 days of operation, limit 7 days" + fixed,
		},
		"already past": {
			is("VO0480JFDGT", "HPD3", 32800), FirmwareDefectSoon,
			ends + "in 0 days of operation, limit 7 days" + fixed,
		},
		"a week ahead, not under etcd's data": {
			func(d *Drive) { is("VO0480JFDGT", "HPD3", 32600)(d); d.Name = "nvme9" }, FirmwareDefect,
			"nvme9 (S1): its firmware HPD3 makes it fail at 32768 power-on hours, in 7 days of operation, " +
				"limit 90 days" + fixed,
		},
		"age unknown": {
			func(d *Drive) { d.Model, d.Firmware, d.Hours = "HPE VO0480JFDGT", "HPD3", nil }, FirmwareDefect,
			ends + "and its age is unknown" + fixed,
		},
		"the other advisory": {
			is("HPE EK0800JVYPN", "HPD6", 39000), FirmwareDefect,
			"nvme0 (S1): its firmware HPD6 makes it fail at 40000 power-on hours, in 41 days of operation, " +
				"limit 90 days; fixed in HPD7 (HPE a00097382; known defects as of 2020-03-20)",
		},
		"fixed":              {is("HP VO0480JFDGT", "HPD8", 32600), "", ""},
		"fixed, two digits":  {is("HP VO0480JFDGT", "HPD10", 32600), "", ""},
		"fixed in the other": {is("HPE EK0800JVYPN", "HPD7", 39990), "", ""},
		"another model":      {is("HP VO0480JFDGX", "HPD3", 32600), "", ""},
		"another revision":   {is("HP VO0480JFDGT", "HPG3", 32600), "", ""},
		"no revision":        {is("HP VO0480JFDGT", "HPD", 32600), "", ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := withChecks(t)
			b.hardware = driven(c.drive)
			b.each(2*time.Second, ms)
			for _, code := range []Code{FirmwareDefect, FirmwareDefectSoon} {
				want := ""
				if code == c.code {
					want = c.want
				}
				if got := b.found(code); got != want {
					t.Errorf("%s: found %q, want %q", code, got, want)
				}
			}
			gates := Nothing
			if c.code == FirmwareDefectSoon {
				gates = Joins
			}
			if b.result.Gates != gates {
				t.Errorf("it gates %v", b.result.Gates.Names())
			}
		})
	}
}

func TestNoModelIsListedTwice(t *testing.T) {
	t.Parallel()
	var all []string
	for _, d := range firmwareDefects() {
		all = append(all, d.models...)
	}
	slices.Sort(all)
	if n := len(all); n != 23 || len(slices.Compact(all)) != n {
		t.Errorf("the models are %v", all)
	}
}

func TestFirmwareThatIsUnknownIsNotAvailable(t *testing.T) {
	t.Parallel()
	b := withChecks(t)
	b.hardware = driven(func(d *Drive) { d.Firmware = "" })
	b.each(2*time.Second, ms)
	if got := b.missing("firmware"); got != "no drive reports its model and firmware" {
		t.Errorf("not available: %q", got)
	}
	if got := b.missing("firmware-soon"); got != "no drive under etcd's data reports its model and firmware" {
		t.Errorf("not available: %q", got)
	}
}
