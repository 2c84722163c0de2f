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
	// As sched(7) and ioprio_set(2) name them.
	schedIdle        = 5
	ioprioWhoProcess = 1
	ioprioIdle       = 3 << 13
	mostThreads      = 1000
	burst            = 4 << 20 // bytes that are allowed at once before the rate applies
)

// lowerPriority lowers the priority of this process and of what it starts from now on: it runs only while the CPU or
// the disk is idle. If the kernel or a service's sandbox forbids that, it runs with the agent's priority.
func lowerPriority() {
	runtime.GOMAXPROCS(1)
	done := map[int]bool{}
	for len(done) < mostThreads { // a new thread has the priority of its creator, which may not have been lowered yet
		tasks, err := os.ReadDir("/proc/self/task")
		before := len(done)
		for _, task := range tasks {
			id, numberErr := strconv.Atoi(task.Name())
			if numberErr != nil || done[id] {
				continue
			}
			done[id] = true
			thread(id)
		}
		if err != nil || len(done) == before {
			return
		}
	}
}

// thread lowers the priority of one thread.
func thread(id int) {
	_ = unix.Setpriority(unix.PRIO_PROCESS, id, leastNice)
	var none int32 // this policy has no priorities
	_, _, _ = unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(id), schedIdle,
		uintptr(unsafe.Pointer(&none))) //nolint:gosec // the kernel reads a number
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, ioprioWhoProcess, uintptr(id), ioprioIdle)
}

// throttle reports progress, and blocks its caller so that the progress stays within that rate.
func throttle(ctx context.Context, most config.Size, did func(int64)) func(int64) {
	limit := rate.NewLimiter(rate.Limit(most), burst)
	return func(n int64) {
		did(n)
		for ; n > 0 && ctx.Err() == nil; n -= burst { // the caller notices by itself that the context has ended
			_ = limit.WaitN(ctx, int(min(n, burst)))
		}
	}
}
