// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sensors

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/health"
)

const (
	clockSource    = "devices/system/clocksource/clocksource0/current_clocksource"
	mostProcessors = 4096
	givenUp        = 16    // seconds of error at which the kernel treats the clock as unsynchronised
	apart          = 0.001 // maximum time between the readings of two clocks that are compared, in seconds

	noPressure      = absence("PSI is disabled: boot with psi=1")
	noThrottle      = absence("no throttle counters for this CPU")
	noMachineChecks = absence("no machine-check reporting for this CPU")
)

// pressure reads the pressure (PSI) of one resource.
func (r *Reader) pressure(of string) (procfs.PSIStats, error) {
	proc, err := procfs.NewFS(r.proc)
	if err != nil {
		return procfs.PSIStats{}, absence("there is no " + r.proc)
	}
	stats, err := proc.PSIStatsForResource(of)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EOPNOTSUPP):
		return stats, noPressure
	case err != nil:
		return stats, absence("cannot read " + r.proc + "/pressure/" + of)
	}
	return stats, nil
}

// waited returns the percentage of the last minute in which some process waited for a CPU, or in which all processes
// waited for the disk. Processes never all wait for a CPU at once, because at least one is running.
func (r *Reader) waited(of string) (float64, error) {
	stats, err := r.pressure(of)
	line := stats.Full
	if of == "cpu" {
		line = stats.Some
	}
	switch {
	case err != nil:
		return 0, err
	case line == nil || line.Avg60 > 100:
		return 0, absence("cannot read " + r.proc + "/pressure/" + of)
	}
	return line.Avg60, nil
}

// maxError returns the kernel's maximum error of the wall clock. The query changes nothing and needs no privilege.
func maxError() (float64, error) {
	var state unix.Timex
	if _, err := unix.Adjtimex(&state); err != nil {
		return 0, absence("cannot read the clock error: " + err.Error())
	}
	return offAtMost(state), nil
}

// offAtMost returns the maximum error in seconds. For an unsynchronised clock it is at least givenUp, whatever the
// kernel reports.
func offAtMost(state unix.Timex) float64 {
	off := float64(state.Maxerror) / 1e6 // microseconds
	if state.Status&unix.STA_UNSYNC != 0 {
		return max(off, givenUp)
	}
	return off
}

// bootedAt returns the time of the boot by the wall clock, in seconds. It changes when the clock is stepped, but not
// when it is slewed: both clocks then run at the same rate.
func bootedAt() (float64, error) {
	for range 5 { // retry if the process was descheduled between the readings
		var before, wall, after unix.Timespec
		err := errors.Join(unix.ClockGettime(unix.CLOCK_BOOTTIME, &before),
			unix.ClockGettime(unix.CLOCK_REALTIME, &wall), unix.ClockGettime(unix.CLOCK_BOOTTIME, &after))
		if err != nil {
			return 0, absence("cannot read the clocks: " + err.Error())
		}
		if took := float64(after.Nano()-before.Nano()) / 1e9; took < apart {
			return float64(wall.Nano())/1e9 - float64(before.Nano())/1e9 - took/2, nil
		}
	}
	return 0, absence("CPU starvation: cannot compare the clocks")
}

// throttled returns how many times a CPU was throttled for heat, alone or with its package, on average over all CPUs.
func (r *Reader) throttled() (float64, error) {
	dirs, err := filepath.Glob(filepath.Join(r.sys, "devices/system/cpu/cpu[0-9]*/thermal_throttle"))
	if err != nil || len(dirs) == 0 || len(dirs) > mostProcessors {
		return 0, noThrottle
	}
	all := 0.0
	for _, dir := range dirs {
		worse := 0.0
		for _, counter := range []string{"core_throttle_count", "package_throttle_count"} {
			if !exists(dir, counter) {
				continue // not every CPU has both counters
			}
			n, err := sum(dir, counter)
			if err != nil {
				return 0, err
			}
			worse = max(worse, n)
		}
		all += worse
	}
	return all / float64(len(dirs)), nil
}

// machineChecks returns 1 if a CPU has reported an uncorrectable error (TAINT_MACHINE_CHECK), and 0 otherwise.
func (r *Reader) machineChecks() (float64, error) {
	const checked = 1 << 4
	if !exists(r.sys, "devices/system/machinecheck") {
		return 0, noMachineChecks
	}
	path := filepath.Join(r.proc, "sys/kernel/tainted")
	text, err := read(path)
	if err != nil {
		return 0, absence("cannot read " + path)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0, absence(path + " is not a number")
	}
	return float64(n & checked / checked), nil
}

// hung returns how many tasks the kernel has found blocked for minutes.
func (r *Reader) hung() (float64, error) {
	const file, after = "sys/kernel/hung_task_detect_count", "sys/kernel/hung_task_timeout_secs"
	if patience, err := sum(r.proc, after); err != nil || patience == 0 {
		return 0, absence("the kernel's hung-task detection is off")
	}
	if !exists(r.proc, file) {
		return 0, absence(health.HungUncounted)
	}
	return sum(r.proc, file)
}

// segments returns all TCP segments that this host has sent, and the part that was retransmitted.
func (r *Reader) segments() health.Part {
	path := filepath.Join(r.proc, "net/snmp")
	text, err := read(path)
	if err != nil {
		return health.Part{Absent: "cannot read " + path}
	}
	var names []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "Tcp:" {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		return part(path, names, fields, []string{"RetransSegs"}, []string{"OutSegs"})
	}
	return health.Part{Absent: path + " has no TCP counters"}
}

// processor returns the time of all CPUs, and the part that the hypervisor has given to other machines.
func (r *Reader) processor() health.Part {
	path := filepath.Join(r.proc, "stat")
	text, err := begin(path)
	if err != nil {
		return health.Part{Absent: "cannot read " + path}
	}
	first, _, _ := strings.Cut(text, "\n")
	// without guest time, which user and nice include
	names := []string{"cpu", "user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"}
	return part(path, names, strings.Fields(first), []string{"steal"}, names[1:])
}

// begin reads the beginning of a file that may be long.
func begin(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	const enough = 4 << 10
	data, err := io.ReadAll(io.LimitReader(f, enough))
	return string(data), err
}

// part adds up counters of a line: Of is the sum of the counters named in of, and Among the sum of those named in
// among.
func part(path string, names, line []string, of, among []string) (out health.Part) {
	add := func(wanted []string) float64 {
		all := 0.0
		for _, w := range wanted {
			n := math.NaN()
			for i := 1; i < min(len(names), len(line)); i++ {
				if names[i] != w {
					continue
				}
				if value, err := strconv.ParseUint(line[i], 10, 53); err == nil {
					n = float64(value)
				}
			}
			all += n
		}
		return all
	}
	out.Of, out.Among = add(of), add(among)
	if !(out.Of >= 0 && out.Among >= 0) || len(line) == 0 || line[0] != names[0] {
		return health.Part{Absent: path + " has impossible numbers"}
	}
	out.Known = true
	return out
}
