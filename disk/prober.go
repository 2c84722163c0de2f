// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// PageFD is the file descriptor of the shared page in the child.
	PageFD = 3
	// longestNap bounds how late the child notices a request for a burst between two operations. More frequent polling
	// would be a large part of the cost of the probe at rest.
	longestNap = time.Second

	exitUsage    = 64 // EX_USAGE
	exitSoftware = 70 // EX_SOFTWARE
)

// ChildMain is the child's main function: it probes until stdin ends, which means that its parent has closed the probe
// or died, and returns the exit code. args are the arguments after the subcommand's name, as composed by [StartProbe];
// the shared page is file descriptor 3. The caller must exit with the code at once: an operation may still be in
// flight.
func ChildMain(args []string, stdin io.Reader, stderr io.Writer) int {
	set, err := parseSettings(args, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "cannot probe the disk: %v\n", err)
		return exitUsage
	}
	page, err := openPage(os.NewFile(PageFD, "page"))
	if err != nil {
		fmt.Fprintf(stderr, "cannot probe the disk: %v; this is an internal command of quorumd\n", err)
		return exitSoftware
	}
	// The parent decides when the child ends. A signal to the whole group must not look like a crash.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGXFSZ)
	settleIn(stderr)

	if set.exam {
		if err := becomeOwner(set.target); err != nil {
			fmt.Fprintf(stderr, "cannot switch to the owner of %s: %v\n", set.target, err)
			return exitSoftware
		}
	}
	prober, err := newProber(page, set)
	if err != nil {
		fmt.Fprintf(stderr, "cannot probe the disk: %v; check whether the machine is out of memory\n", err)
		return exitSoftware
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if set.exam {
		return prober.exam(ctx, cancel, stdin)
	}
	go prober.run(ctx)
	_, _ = io.Copy(io.Discard, stdin)
	return 0
}

// settleIn makes the process small, recognizable and resident.
func settleIn(stderr io.Writer) {
	// With one thread at a time, the canary runs within microseconds while the other goroutine waits for the disk. If
	// there were a second, idle thread, Go's runtime would watch the first one for as long as a write takes, which
	// costs more than the probe itself.
	runtime.GOMAXPROCS(1)
	// The child is started through /proc/self/exe, so its name would be "exe".
	_ = os.WriteFile("/proc/self/comm", []byte("quorumd-probe"), 0)
	if err := lockMemory(); err != nil {
		fmt.Fprintf(stderr,
			"cannot lock the probe's memory: %v; the probe runs unlocked and may stall if the disk with its binary "+
				"stalls (raise LimitMEMLOCK or grant CAP_IPC_LOCK)\n", err)
	}
}

// lockMemory locks the pages that the process has touched into memory. Other pages stay unlocked (MCL_ONFAULT): loading
// the whole program and all address space that the runtime reserves would cost much more than it gains.
func lockMemory() error {
	flags := unix.MCL_CURRENT | unix.MCL_ONFAULT
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err == nil && limit.Cur == unix.RLIM_INFINITY {
		// Lock future pages only if there is no limit. With a limit, a later allocation would fail instead of staying
		// unlocked.
		flags |= unix.MCL_FUTURE
	}
	return unix.Mlockall(flags)
}

// prober runs the operations, one at a time.
type prober struct {
	*watched
	place  *place
	direct *task
	wal    *task
	tasks  []*task
}

func newProber(page *page, set settings) (*prober, error) {
	w := &watched{page: page, canary: newCanary()}
	direct, err := newDirectLane(w, set)
	if err != nil {
		return nil, err
	}
	p := &prober{watched: w, place: newPlace(w, set)}
	p.direct = &task{act: p.claimed(direct.run), interval: func(bool) time.Duration { return set.direct }}
	p.wal = &task{act: p.claimed(newWALLane(w, set).run), interval: func(failed bool) time.Duration {
		if page.burst.Load() != 0 && !failed {
			return time.Second / time.Duration(set.burst)
		}
		return set.wal
	}}
	look := &task{act: p.claimed(p.place.run), interval: func(bool) time.Duration { return set.usage }}
	p.tasks = []*task{look, p.direct, p.wal}
	return p, nil
}

// claimed wraps an operation: it claims the directory before the operation, and releases it after a failure, so that
// the next claim checks everything again.
func (p *prober) claimed(act func() error) func() error {
	return func() error {
		if err := p.place.claim(); err != nil {
			return err
		}
		err := act()
		if err != nil {
			p.place.release()
		}
		return err
	}
}

func (p *prober) run(ctx context.Context) {
	for ctx.Err() == nil {
		next := earliest(p.tasks)
		p.announce()
		if early := next.due() - canaryPeriod - Monotonic(); early > 0 {
			nap(ctx, min(early, longestNap))
			continue
		}
		p.canary.doze(ctx)
		next.run()
		p.canary.disarm()
	}
}

// announce publishes when each lane is due, so that the parent can distinguish a resting lane from one that gets no CPU
// time.
func (p *prober) announce() {
	p.page.due[LaneDirect].Store(uint64(p.direct.due()))
	p.page.due[LaneWAL].Store(uint64(p.wal.due()))
}

func nap(ctx context.Context, length time.Duration) {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
