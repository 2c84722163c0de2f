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
	burst            = 4 << 20 // bytes that are done at once before a rate holds them back
)

// giveWay has this process, and what it starts from now on, run when nobody else wants the processor or the disk. What
// the kernel or a service's sandbox forbids is left: it runs like the agent then.
func giveWay() {
	runtime.GOMAXPROCS(1)
	done := map[int]bool{}
	for len(done) < mostThreads { // a new thread is like the one that has made it, which may not have been looked at
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

// thread has one thread give way.
func thread(id int) {
	_ = unix.Setpriority(unix.PRIO_PROCESS, id, leastNice)
	var none int32 // this policy has no priorities
	_, _, _ = unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(id), schedIdle,
		uintptr(unsafe.Pointer(&none))) //nolint:gosec // the kernel reads a number
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, ioprioWhoProcess, uintptr(id), ioprioIdle)
}

// atMost tells of what is done, and holds up who does it so that it is no more than that rate.
func atMost(ctx context.Context, most config.Size, did func(int64)) func(int64) {
	limit := rate.NewLimiter(rate.Limit(most), burst)
	return func(n int64) {
		did(n)
		for ; n > 0 && ctx.Err() == nil; n -= burst { // who does it sees for himself that the context has ended
			_ = limit.WaitN(ctx, int(min(n, burst)))
		}
	}
}
