// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is the clock of the agent. It never jumps, and it keeps running while the machine is suspended.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(fmt.Sprintf("CLOCK_BOOTTIME: %v", err)) // impossible: Linux has had this clock since 2.6.39
	}
	return time.Duration(t.Nano())
}
