// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// markName is the file that marks a directory as created by the demo. A running demo locks it and writes its process ID
// into it.
const markName = ".quorumd-demo"

// claim creates the directory, or takes over the directory of an earlier run. It refuses any other directory that is
// not empty, and the directory of a running demo.
func (d *demo) claim() error {
	mark := filepath.Join(d.dir, markName)
	entries, err := os.ReadDir(d.dir)
	if err == nil && len(entries) > 0 {
		if _, err := os.Stat(mark); err != nil {
			return fmt.Errorf("cannot use %s: it is not empty, and not the demo's own", d.dir)
		}
	}
	if err := os.MkdirAll(d.dir, 0o755); err != nil {
		return err
	}
	if d.mark, err = lockMark(mark); err != nil {
		return err
	}
	if err := d.stop(); err != nil {
		return errors.Join(fmt.Errorf("cannot stop the processes of an earlier run in %s: %w", d.dir, err),
			d.mark.Close())
	}
	return d.empty()
}

// lockMark creates the mark if necessary, and locks it for this process.
func lockMark(path string) (*os.File, error) {
	for {
		mark, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(mark.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			pid, _ := io.ReadAll(io.LimitReader(mark, 32)) // if this fails, the error message contains no process ID
			return nil, errors.Join(inTheWay(path, strings.TrimSpace(string(pid))), mark.Close())
		}
		held, heldErr := mark.Stat()
		there, thereErr := os.Stat(path)
		if heldErr == nil && thereErr == nil && os.SameFile(held, there) {
			return mark, errors.Join(mark.Truncate(0), writePID(mark))
		}
		if err := mark.Close(); err != nil { // the previous holder removed the file when it ended: try again
			return nil, err
		}
	}
}

func writePID(mark *os.File) error {
	_, err := fmt.Fprintln(mark, os.Getpid())
	return err
}

func inTheWay(mark, pid string) error {
	who, end := "a demo", "end it with Ctrl-C in its terminal"
	if pid != "" {
		who, end = "a demo, process "+pid+",", end+", or: kill "+pid
	}
	return fmt.Errorf("cannot start: %s is already running in %s; %s", who, filepath.Dir(mark), end)
}

// stop ends all processes of the hosts, including those that an earlier run has left.
func (d *demo) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var errs []error
	for _, h := range d.hosts {
		errs = append(errs, h.Stop(ctx))
	}
	return errors.Join(errs...)
}

// empty removes everything but the mark.
func (d *demo) empty() error {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() != markName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(d.dir, entry.Name())))
		}
	}
	return err
}

// remove removes the directory and releases its lock.
func (d *demo) remove() error { return errors.Join(os.RemoveAll(d.dir), d.mark.Close()) }

// end ends all processes. It also removes the directory, unless the logs there explain a failure.
func (d *demo) end(err error) error {
	if stopErr := d.stop(); stopErr != nil {
		err = errors.Join(err, stopErr)
	}
	if err == nil {
		return d.remove()
	}
	return errors.Join(fmt.Errorf("%w\nThe logs stay until the next demo: %s, and etcd.log next to each",
		err, filepath.Join(here(d.dir), "n*", "quorumd.log")), d.mark.Close())
}
