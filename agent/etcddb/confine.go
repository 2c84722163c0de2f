// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package etcddb

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Limits bound a process that reads an untrusted file, so that only this process fails and the resources of its unit
// are not exhausted. A limit of zero is not applied. Mapped files, such as a database, do not count as memory: the
// limit is RLIMIT_DATA, because RLIMIT_AS also counts address space that Go only reserves.
type Limits struct {
	Memory uint64        // bytes
	CPU    time.Duration // rounded down to whole seconds
}

// Confine permanently limits this process and every process that it starts.
func (l Limits) Confine() error { return l.set(true) }

// ConfineSelf limits this process. A process that it starts inherits the limits until [Unconfine] lifts them.
func (l Limits) ConfineSelf() error { return l.set(false) }

func (l Limits) set(permanent bool) error {
	for resource, limitValue := range map[int]uint64{
		unix.RLIMIT_DATA: l.Memory, unix.RLIMIT_CPU: uint64(max(l.CPU, 0) / time.Second),
	} {
		if limitValue == 0 {
			continue
		}
		var limit unix.Rlimit
		err := unix.Getrlimit(resource, &limit)
		if err == nil {
			limit.Cur = min(limit.Max, limitValue)
			if permanent {
				limit.Max = limit.Cur
			}
			err = unix.Setrlimit(resource, &limit)
		}
		if err != nil {
			return fmt.Errorf("cannot set resource limits for this process: %w", err)
		}
	}
	return nil
}

// Unconfine raises a child's limits to the maximum that this process may set for itself.
func Unconfine(pid int) error {
	for _, resource := range []int{unix.RLIMIT_DATA, unix.RLIMIT_CPU} {
		var limit unix.Rlimit
		err := unix.Getrlimit(resource, &limit)
		if err == nil && limit.Cur != limit.Max {
			limit.Cur = limit.Max
			err = unix.Prlimit(pid, resource, &limit, nil)
		}
		if err != nil {
			return fmt.Errorf("cannot lift the resource limits of process %d: %w", pid, err)
		}
	}
	return nil
}

// HalfOfMemory returns half of this machine's memory, in bytes, and at least 1 GiB: the limit for a process that runs
// while etcd is stopped.
func HalfOfMemory() uint64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 1 << 30
	}
	return max(1<<30, info.Totalram*uint64(info.Unit)/2)
}
