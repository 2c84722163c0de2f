// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package etcddb

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Limits are what a process that reads a file which it does not trust may take: it fails alone then, and takes nothing
// from the unit that it runs in. Files that are mapped, as a database is, do not count as memory: the limit is
// RLIMIT_DATA, because RLIMIT_AS counts what Go only reserves.
type Limits struct {
	Memory uint64        // bytes
	CPU    time.Duration // to the second
}

// Confine bounds this process for good, and every process that it starts.
func (l Limits) Confine() error { return l.set(true) }

// ConfineSelf bounds this process. [Unconfine] takes the bounds from a process that it has started.
func (l Limits) ConfineSelf() error { return l.set(false) }

func (l Limits) set(forGood bool) error {
	for resource, most := range map[int]uint64{
		unix.RLIMIT_DATA: l.Memory, unix.RLIMIT_CPU: uint64(max(l.CPU, 0) / time.Second),
	} {
		if most == 0 {
			continue
		}
		var limit unix.Rlimit
		err := unix.Getrlimit(resource, &limit)
		if err == nil {
			limit.Cur = min(limit.Max, most)
			if forGood {
				limit.Max = limit.Cur
			}
			err = unix.Setrlimit(resource, &limit)
		}
		if err != nil {
			return fmt.Errorf("cannot bound what this process may take: %w", err)
		}
	}
	return nil
}

// Unconfine gives a child of this process all that this process could give itself.
func Unconfine(pid int) error {
	for _, resource := range []int{unix.RLIMIT_DATA, unix.RLIMIT_CPU} {
		var limit unix.Rlimit
		err := unix.Getrlimit(resource, &limit)
		if err == nil && limit.Cur != limit.Max {
			limit.Cur = limit.Max
			err = unix.Prlimit(pid, resource, &limit, nil)
		}
		if err != nil {
			return fmt.Errorf("cannot take the bounds of its parent from process %d: %w", pid, err)
		}
	}
	return nil
}

// HalfOfMemory returns half of this machine's memory, in bytes, and a gibibyte at least: what a process may take that
// runs while etcd does not.
func HalfOfMemory() uint64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 1 << 30
	}
	return max(1<<30, info.Totalram*uint64(info.Unit)/2)
}
