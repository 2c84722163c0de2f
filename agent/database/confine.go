// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Confine bounds the memory that this process may allocate, in bytes, for good. A child calls it before it reads a
// file that it does not trust, so that it fails alone and takes nothing from the unit that it runs in. Files that are
// mapped, as a database is, do not count: the limit is RLIMIT_DATA, because RLIMIT_AS counts what Go only reserves.
func Confine(memory uint64) error {
	limit := unix.Rlimit{}
	if err := unix.Getrlimit(unix.RLIMIT_DATA, &limit); err != nil {
		return fmt.Errorf("cannot bound the memory of this process: %w", err)
	}
	limit.Max = min(limit.Max, memory)
	limit.Cur = min(limit.Cur, limit.Max)
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &limit); err != nil {
		return fmt.Errorf("cannot bound the memory of this process: %w", err)
	}
	return nil
}
