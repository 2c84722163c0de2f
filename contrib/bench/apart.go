// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// prepareOtherDisk prepares a separate disk for the files of a host that does not exist yet, in memory if there is
// room.
func (s *site) prepareOtherDisk(name string) error {
	dir, err := s.otherDisk(name)
	if err != nil {
		return err
	}
	// The host's usual path is a symbolic link to that directory, so that the next run finds the host's configuration
	// and stops an etcd that still runs.
	return errors.Join(os.MkdirAll(dir, 0o755), os.Symlink(dir, filepath.Join(s.dir, name)))
}

// dedicateCPU dedicates the last CPU to a host, and all others to the bench and the processes that it has started.
func (s *site) dedicateCPU(h *testbed.Host) error {
	last := runtime.NumCPU() - 1
	if last < 1 {
		s.progress("%s: this machine has one CPU, which all processes share", s.row)
		return nil
	}
	var own, others, all unix.CPUSet
	own.Set(last)
	for i := range last {
		others.Set(i)
		all.Set(i)
	}
	all.Set(last)
	s.atEnd(func(context.Context) error { return pin(os.Getpid(), &all) })
	etcd, err := h.EtcdPID(s.ctx)
	if err != nil {
		return err
	}
	return errors.Join(pin(os.Getpid(), &others), pin(h.AgentPID(), &own), pin(etcd, &own))
}

// pin binds a process, its descendants and their future children to these CPUs.
func pin(pid int, to *unix.CPUSet) error {
	family, err := processTree(pid, 0)
	if err != nil {
		return err
	}
	for _, p := range family {
		threads, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(p.PID), "task", "*"))
		if err != nil {
			return err
		}
		for _, thread := range threads {
			id, err := strconv.Atoi(filepath.Base(thread))
			if err != nil {
				return err
			}
			// the thread may have ended
			if err := unix.SchedSetaffinity(id, to); err != nil && !errors.Is(err, unix.ESRCH) {
				return os.NewSyscallError("sched_setaffinity", err)
			}
		}
	}
	return nil
}
