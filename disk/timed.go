// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"errors"
	"syscall"
	"time"
)

// watched runs the child's operations. It records each operation on the shared page before it begins, so that the
// parent can observe it.
type watched struct {
	page   *page
	canary *canary
}

// do runs one operation. If the operation fails, do records the error and returns it.
func (w *watched) do(op opCode, f func() error) error {
	_, _, err := w.timed(op, f)
	return err
}

// sample runs one operation and records its latency.
func (w *watched) sample(op opCode, lane Lane, f func() (latency time.Duration, err error)) error {
	var latency time.Duration
	took, end, err := w.timed(op, func() (err error) {
		latency, err = f()
		return err
	})
	w.page.push(Sample{
		Lane: lane, End: end, Latency: latency,
		Contaminated: w.canary.contaminated(took, end),
		Errno:        errnoOf(err),
	})
	return err
}

// whole wraps an operation so that it also returns its total duration.
func whole(f func() error) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		start := Monotonic()
		err := f()
		return Monotonic() - start, err
	}
}

func (w *watched) timed(op opCode, f func() error) (latency, end time.Duration, err error) {
	start := Monotonic()
	w.page.begin(op, start)
	err = f()
	end = Monotonic()
	w.page.finish()
	if err != nil {
		w.page.fail(op, errnoOf(err), end)
	}
	return end - start, end, err
}

// errnoOf returns the errno of an error; EIO if it is not from the kernel.
func errnoOf(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return syscall.EIO
}
