// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sensors

import (
	"math"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestAnUnsynchronisedClockHasAnErrorOfSixteenSecondsOrMore(t *testing.T) {
	t.Parallel()
	state := unix.Timex{Maxerror: 250_000}
	if off := offAtMost(state); off != 0.25 {
		t.Errorf("a synchronised clock is off by %v s", off)
	}
	state.Status = unix.STA_UNSYNC | unix.STA_PLL
	if off := offAtMost(state); off != givenUp {
		t.Errorf("an unsynchronised clock is off by %v s", off)
	}
}

func TestTheBootTimeMatchesTheKernelsAndIsStable(t *testing.T) {
	t.Parallel()
	booted, err := bootedAt()
	for range 1000 { // on a busy machine the two clocks may be read too far apart
		if err == nil {
			break
		}
		booted, err = bootedAt()
	}
	if err != nil {
		t.Fatal(err)
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		t.Fatal(err)
	}
	since := time.Since(time.Unix(0, int64(booted*1e9)))
	if off := math.Abs(since.Seconds() - float64(info.Uptime)); off > 60 {
		t.Errorf("booted %s ago, by the kernel %d s", since, info.Uptime)
	}
	if again, err := bootedAt(); err == nil && math.Abs(again-booted) > 2*apart {
		t.Errorf("booted at %f, and then at %f", booted, again)
	}
}
