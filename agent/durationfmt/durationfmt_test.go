// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package durationfmt

import (
	"math"
	"testing"
	"time"
)

func TestTextHasTheTwoLargestUnits(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		0: "0s", 250 * time.Millisecond: "250ms", 3200 * time.Millisecond: "3.2s", 45 * time.Second: "45s",
		time.Minute: "1m", 52 * time.Minute: "52m", 4*time.Minute + 20*time.Second: "4m20s", time.Hour: "1h",
		time.Hour + 5*time.Minute + 59*time.Second: "1h5m", time.Hour + 59*time.Second: "1h", 23 * time.Hour: "23h",
		day: "1d", 2*day + 4*time.Hour + time.Minute: "2d4h", 72 * time.Hour: "3d", -90 * time.Second: "-1m30s",
		math.MinInt64: "-106751d23h",
	} {
		if got := Text(d); got != want {
			t.Errorf("%d is shown as %q, want %q", d, got, want)
		}
	}
}

func TestTypedIsAcceptedByAFlag(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", time.Minute: "1m", 90 * time.Minute: "1h30m", 168 * time.Hour: "168h", 30 * time.Second: "30s",
		time.Hour + time.Second: "1h0m1s", -4 * time.Hour: "-4h",
	} {
		got := Parseable(d)
		if again, err := time.ParseDuration(got); got != want || again != d || err != nil {
			t.Errorf("%d is shown as %q, want %q; it is parsed as %d, %v", d, got, want, again, err)
		}
	}
}
