// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"time"

	"golang.org/x/sys/unix"
)

// Monotonic gives the present moment on CLOCK_MONOTONIC, the clock of every [Sample] and of the page both processes
// share: the time since boot without the time asleep. Go's own monotonic readings cannot be compared between processes.
func Monotonic() time.Duration {
	var now unix.Timespec
	// It cannot fail: the clock always exists and the address is ours.
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return time.Duration(now.Nano())
}
