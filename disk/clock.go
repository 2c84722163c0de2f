// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Monotonic returns the current time on CLOCK_MONOTONIC, the clock of every [Sample] and of the page that both
// processes share: the time since boot, without suspend. Go's own monotonic readings cannot be compared between
// processes.
//
// Monotonic makes the system call without notifying Go's scheduler: reading a clock never blocks, and the notifications
// would be a large part of the cost of a process that is awake for a few microseconds at a time.
func Monotonic() time.Duration {
	var now unix.Timespec
	// The call cannot fail: the clock always exists, and the address is valid.
	_, _, _ = unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&now)), 0)
	return time.Duration(now.Nano())
}
