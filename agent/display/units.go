// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package display

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// Latency formats seconds the way disk latencies are usually written: "0.25 ms", "41.3 ms", "1.5 s".
func Latency(seconds float64) string {
	if math.Abs(seconds) < 0.9995 {
		return ThreeDigits(seconds*1000) + " ms"
	}
	return ThreeDigits(seconds) + " s"
}

// ThreeDigits rounds a number to three significant digits, or to an integer if it has more than three digits before the
// decimal point. It omits trailing zeros after the point.
func ThreeDigits(x float64) string {
	if math.Abs(x) >= 1000 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
	if err != nil { // impossible: the text is FormatFloat's
		return strconv.FormatFloat(x, 'g', 3, 64)
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// Span formats a duration in its two largest units, down to seconds: "45s", "4m20s", "3h12m", "2d4h".
func Span(d time.Duration) string { return durationfmt.Seconds(max(d, 0)) }

// Age formats the age of an observation; "never" if there was none.
func Age(seconds *float64) string {
	if seconds == nil {
		return "never"
	}
	return Span(Seconds(*seconds))
}

// Seconds converts seconds to a duration, limited to the range from zero to a billion seconds.
func Seconds(seconds float64) time.Duration {
	return time.Duration(min(max(seconds, 0), 1e9) * float64(time.Second))
}

// Timestamp formats a time in UTC, so that times from several hosts can be compared.
func Timestamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// Since formats a time and how long ago it was.
func Since(t, now time.Time) string {
	return fmt.Sprintf("%s (%s)", Timestamp(t), Span(now.Sub(t)))
}

// Size formats bytes in binary units.
func Size(bytes float64) string {
	for _, unit := range []string{"B", "KiB", "MiB", "GiB", "TiB"} {
		if bytes < 1024 {
			return ThreeDigits(bytes) + " " + unit
		}
		bytes /= 1024
	}
	return ThreeDigits(bytes) + " PiB"
}

// Count formats a number with its noun in singular or plural.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
