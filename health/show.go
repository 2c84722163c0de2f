// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strconv"
	"time"
)

// show formats a duration with up to three digits: 850 µs, 2.13 ms, 48 ms, 1.3 s, 34 s, 15 min.
func show(d time.Duration) string {
	if d == 0 {
		return "0 s"
	}
	units := []struct {
		below time.Duration
		unit  time.Duration
		name  string
	}{
		{time.Millisecond, time.Microsecond, "µs"},
		{time.Second, time.Millisecond, "ms"},
		{2 * time.Minute, time.Second, "s"},
		{2 * time.Hour, time.Minute, "min"},
	}
	for _, u := range units {
		if d.Abs() < u.below {
			return digits(d, u.unit) + " " + u.name
		}
	}
	return digits(d, time.Hour) + " h"
}

func digits(d, unit time.Duration) string {
	n := float64(d) / float64(unit)
	if n >= 100 || n <= -100 {
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	return strconv.FormatFloat(n, 'g', 3, 64)
}

// showBytes formats a size: 512 MiB, 1.5 GiB.
func showBytes(n uint64) string {
	size, unit := float64(n), "B"
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB", "PiB"} {
		if size < 1024 {
			break
		}
		size, unit = size/1024, u
	}
	if size >= 100 {
		return fmt.Sprintf("%.0f %s", size, unit)
	}
	return fmt.Sprintf("%.3g %s", size, unit)
}

// plural formats a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
