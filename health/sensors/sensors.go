// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package sensors reads what the kernel reports about a machine: memory and its modules, CPUs, the clock, the block
// devices below etcd's data, hardware monitors, and the interfaces and connections of etcd's traffic. It also asks
// chronyd for its time source.
//
// It promises that a reading reads a bounded number of bounded files, and that a [health.Figure] whose value is missing
// or impossible is absent with a reason, never zero. Only [Reader.Database], which accesses a file system, and
// [Reader.Sensors], which queries chips and drives, may hang.
package sensors

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/health"
)

// Reader reads the kernel's reports. Create it with [New].
type Reader struct {
	proc, sys string
	clock     func() (seconds float64, err error)
	now       func() time.Duration // time since boot, on the clock that the probe uses
	wall      func() (sinceBoot float64, err error)
	ipv4      func() ([]held, error)
	names     resolved
}

// New returns a reader for this machine.
func New() *Reader {
	return &Reader{
		proc: procfs.DefaultMountPoint, sys: "/sys", clock: maxError, now: disk.Monotonic, wall: bootedAt,
		ipv4: ipv4,
	}
}

// Read returns the kernel's current values.
func (r *Reader) Read() health.MachineReading {
	return health.MachineReading{
		MemoryAvailable: figure(r.available()), MemoryStalled: figure(r.stalled()), ProcessesKilled: figure(r.killed()),
		MemoryCorrected: figure(r.modules("ce_count")), MemoryUncorrected: figure(r.modules("ue_count")),
		ClockError: figure(r.clock()), Booted: figure(r.wall()), ClockSource: attribute(r.sys, clockSource),
		At: r.now(), Throttled: figure(r.throttled()), MachineChecks: figure(r.machineChecks()),
		TasksHung: figure(r.hung()), ProcessorWaited: figure(r.waited("cpu")),
		DiskWaited: figure(r.waited("io")), Segments: r.segments(),
		Processor: r.processor(),
	}
}

// absence is the reason why a reading is missing, as a stable text.
type absence string

func (a absence) Error() string { return string(a) }

func figure(value float64, err error) health.Figure {
	switch {
	case err != nil:
		return health.Figure{Absent: err.Error()}
	case !(value >= 0): // negative or NaN
		return health.Figure{Absent: "the kernel reports an impossible number"}
	}
	return health.Figure{Value: value, Known: true}
}

// available returns the percentage of available memory.
func (r *Reader) available() (float64, error) {
	proc, err := procfs.NewFS(r.proc)
	if err != nil {
		return 0, absence("there is no " + r.proc)
	}
	info, err := proc.Meminfo()
	if err != nil {
		return 0, absence("cannot read " + r.proc + "/meminfo")
	}
	if info.MemAvailable == nil || info.MemTotal == nil || *info.MemTotal == 0 || *info.MemAvailable > *info.MemTotal {
		return 0, absence(r.proc + "/meminfo has no valid MemAvailable")
	}
	return 100 * float64(*info.MemAvailable) / float64(*info.MemTotal), nil
}

// stalled returns the percentage of the last minute in which all processes waited for memory.
func (r *Reader) stalled() (float64, error) {
	stats, err := r.pressure("memory")
	switch {
	case err != nil:
		return 0, err
	case stats.Full == nil || stats.Full.Avg60 > 100:
		return 0, absence("cannot read " + r.proc + "/pressure/memory")
	}
	return stats.Full.Avg60, nil
}

const (
	smallFile      = 64 << 10 // maximum size of a file in /proc or /sys, in bytes
	mostOfAKind    = 64       // maximum number of memory controllers, and of hwmon chips, to read
	edac           = "devices/system/edac/mc"
	noMemoryErrors = absence("the kernel has no driver that counts errors of this memory (EDAC)")
)

// killed returns how many processes the kernel has killed because memory ran out.
func (r *Reader) killed() (float64, error) {
	path := filepath.Join(r.proc, "vmstat")
	text, err := read(path)
	if err != nil {
		return 0, absence("cannot read " + path)
	}
	for line := range strings.Lines(text) {
		if n, found := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); found {
			return count(path, n)
		}
	}
	return 0, absence(path + " has no oom_kill: the kernel is older than 4.13")
}

// modules adds up a counter over all memory controllers.
func (r *Reader) modules(counter string) (float64, error) {
	paths, err := filepath.Glob(filepath.Join(r.sys, edac, "mc*", counter))
	if err != nil || len(paths) == 0 {
		return 0, noMemoryErrors
	}
	if len(paths) > mostOfAKind {
		return 0, absence(fmt.Sprintf("there are more than %d memory controllers", mostOfAKind))
	}
	sum := 0.0
	for _, path := range paths {
		text, err := read(path)
		if err != nil {
			return 0, absence("cannot read " + path)
		}
		n, err := count(path, strings.TrimSpace(text))
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

func count(path, text string) (float64, error) {
	n, err := strconv.ParseUint(text, 10, 53) // a float64 represents integers of up to 53 bits exactly
	if err != nil {
		return 0, absence(path + " is not a number")
	}
	return float64(n), nil
}

// read returns the content of a small file of the kernel.
func read(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, smallFile+1))
	if err == nil && len(data) > smallFile {
		err = fmt.Errorf("%s has more than %d bytes", path, smallFile)
	}
	return string(data), err
}
