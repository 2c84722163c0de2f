// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// latency shows seconds as people speak of disks: "0.25 ms", "41.3 ms", "1.5 s".
func latency(seconds float64) string {
	if math.Abs(seconds) < 0.9995 {
		return significant(seconds*1000) + " ms"
	}
	return significant(seconds) + " s"
}

// significant gives three significant digits, without zeros at the end.
func significant(x float64) string {
	if math.Abs(x) >= 1000 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
	if err != nil { // not a number: say so
		return strconv.FormatFloat(x, 'g', 3, 64)
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// span shows a duration in its two largest units: "45s", "4m20s", "3h12m", "2d4h".
func span(d time.Duration) string {
	d = max(d, 0).Round(time.Second)
	for _, u := range []struct {
		large, small   time.Duration
		nLarge, nSmall string
	}{{24 * time.Hour, time.Hour, "d", "h"}, {time.Hour, time.Minute, "h", "m"}, {time.Minute, time.Second, "m", "s"}} {
		if d < u.large {
			continue
		}
		text := strconv.FormatInt(int64(d/u.large), 10) + u.nLarge
		if rest := d % u.large / u.small; rest > 0 {
			text += strconv.FormatInt(int64(rest), 10) + u.nSmall
		}
		return text
	}
	return strconv.FormatInt(int64(d/time.Second), 10) + "s"
}

// age shows the age of an observation; "never" if there was none.
func age(seconds *float64) string {
	if seconds == nil {
		return "never"
	}
	return span(duration(*seconds))
}

func duration(seconds float64) time.Duration {
	return time.Duration(min(max(seconds, 0), 1e9) * float64(time.Second))
}

// stamp shows a moment. It is UTC, so that what several hosts say can be compared.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// since shows a moment and how long ago it was at another one.
func since(t, now time.Time) string {
	return fmt.Sprintf("%s (%s)", stamp(t), span(now.Sub(t)))
}

// size shows bytes in binary units.
func size(bytes float64) string {
	for _, unit := range []string{"B", "KiB", "MiB", "GiB", "TiB"} {
		if bytes < 1024 {
			return significant(bytes) + " " + unit
		}
		bytes /= 1024
	}
	return significant(bytes) + " PiB"
}

// count shows a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
