// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"github.com/quorumd/quorumd/agent/config"
)

const (
	leastNice = 19
	// The constants of sched(7) and ioprio_set(2).
	schedIdle        = 5
	ioprioWhoProcess = 1
	ioprioIdle       = 3 << 13
	maxThreads       = 1000
	burstBytes       = 4 << 20 // bytes that may be processed before the rate limit applies
)

// lowerPriority sets the CPU and disk priority of this process, and of the processes that it will start, to idle. If
// the kernel or a sandbox forbids that, they run with the agent's priority.
func lowerPriority() {
	runtime.GOMAXPROCS(1)
	done := map[int]bool{}
	for len(done) < maxThreads { // repeat while there are new threads: a thread inherits its creator's priority
		tasks, err := os.ReadDir("/proc/self/task")
		before := len(done)
		for _, task := range tasks {
			id, numberErr := strconv.Atoi(task.Name())
			if numberErr != nil || done[id] {
				continue
			}
			done[id] = true
			lowerThread(id)
		}
		if err != nil || len(done) == before {
			return
		}
	}
}

func lowerThread(id int) {
	_ = unix.Setpriority(unix.PRIO_PROCESS, id, leastNice)
	var none int32 // struct sched_param: SCHED_IDLE has no priorities
	_, _, _ = unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(id), schedIdle,
		uintptr(unsafe.Pointer(&none))) //nolint:gosec // the kernel reads a number
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, ioprioWhoProcess, uintptr(id), ioprioIdle)
}

// throttle returns a function that reports progress and then blocks, so that the progress does not exceed the rate.
func throttle(ctx context.Context, most config.Size, did func(int64)) func(int64) {
	limit := rate.NewLimiter(rate.Limit(most), burstBytes)
	return func(n int64) {
		did(n)
		// WaitN can fail only if the context ends, and the caller checks the context itself
		for ; n > 0 && ctx.Err() == nil; n -= burstBytes {
			_ = limit.WaitN(ctx, int(min(n, burstBytes)))
		}
	}
}
