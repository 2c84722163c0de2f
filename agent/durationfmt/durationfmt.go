// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package durationfmt formats durations for display. Machine-readable output uses Go's own format instead.
package durationfmt

import (
	"strconv"
	"strings"
	"time"
)

// Text formats a duration in its two largest units, without zero units: "250ms", "45s", "4m20s", "3h12m", "2d4h", "5m".
// Below a minute, it shows full precision, so callers should round first.
func Text(d time.Duration) string {
	if d < 0 {
		return "-" + Text(d.Abs()) // Abs also handles math.MinInt64
	}
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
	return d.String()
}

// Seconds formats a duration, rounded to whole seconds.
func Seconds(d time.Duration) string { return Text(d.Round(time.Second)) }

// Tenths formats a duration, rounded to tenths of a second.
func Tenths(d time.Duration) string { return Text(d.Round(100 * time.Millisecond)) }

// Parseable formats a duration as input for a flag or the configuration, without the trailing zero units that String
// adds: "168h", "1h30m".
func Parseable(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
