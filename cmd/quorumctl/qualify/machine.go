// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package qualify

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/health/sensors"
)

// kernel holds the paths of /proc and /sys, and what package sensors has read from the kernel. None of these reads
// accesses a device.
type kernel struct {
	proc, sys string
	machine   health.MachineReading
}

func thisKernel() kernel { return kernel{procfs.DefaultMountPoint, "/sys", sensors.New().Read()} }

// judgeMachine adds findings about the clock, the memory, the disk and RAID arrays.
func (r *Report) judgeMachine(k kernel) {
	r.judgeClock(k.machine.ClockError)
	r.judgeMemory(k.machine)
	r.judgeDevice(k)
	r.judgeRAID(k)
}

func (r *Report) judgeClock(f health.Figure) {
	limit := 0.0
	for _, c := range health.Checks(health.DefaultThresholds()) {
		if c.Name == "clock" {
			limit = c.Limits[0].Enter
		}
	}
	text := fmt.Sprintf("it may be off by %s, limit %s", show(f.Value), show(limit))
	switch {
	case !f.Known:
		r.find("clock", NotAvailable, "", "%s", f.Absent)
	case f.Value > limit:
		r.find("clock", Warn, "start chronyd or systemd-timesyncd, and check that it reaches its servers", "%s", text)
	default:
		r.find("clock", Pass, "", "%s", text)
	}
}

func (r *Report) judgeMemory(m health.MachineReading) {
	uncorrected, corrected := m.MemoryUncorrected, m.MemoryCorrected
	switch {
	case !uncorrected.Known || !corrected.Known:
		r.find("memory errors", NotAvailable, "", "%s", cmp.Or(uncorrected.Absent, corrected.Absent))
	case uncorrected.Value > 0:
		r.find("memory errors", Fail, "replace the module that 'edac-util -v' or the kernel log names",
			"%.0f uncorrected since boot", uncorrected.Value)
	case corrected.Value > 0:
		r.find("memory errors", Warn, "watch for more errors; 'edac-util -v' names the module",
			"%.0f since boot, all corrected", corrected.Value)
	default:
		r.find("memory errors", Pass, "", "none since boot")
	}
}

// judgeDevice reports the type of disk behind the directory.
func (r *Report) judgeDevice(k kernel) {
	if r.Device == "" {
		r.find("device", NotAvailable, "", "the directory is not on a single block device")
		return
	}
	queue := filepath.Join(k.sys, "class", "block", r.Device, "queue")
	rotational, err := word(filepath.Join(queue, "rotational"))
	if err != nil {
		r.find("device", NotAvailable, "", "the kernel does not report the type of %s", r.Device)
		return
	}
	cache, err := word(filepath.Join(queue, "write_cache"))
	switch {
	case err != nil:
		cache = "unknown"
	case cache == "write back":
		cache = "write back (needs flushes)"
	case cache == "write through":
		cache = "write through (needs no flushes)"
	}
	if rotational == "1" {
		r.find("device", Warn, "use an SSD with power-loss protection",
			"the kernel reports %s as a rotational disk; write cache: %s", r.Device, cache)
		return
	}
	r.find("device", Pass, "", "%s is not a rotational disk; write cache: %s", r.Device, cache)
}

// judgeRAID reports the state of each array. Without arrays it adds no finding.
func (r *Report) judgeRAID(k kernel) {
	fs, err := procfs.NewFS(k.proc)
	if err != nil {
		return
	}
	arrays, err := fs.MDStat()
	if os.IsNotExist(err) {
		return
	}
	if err != nil {
		r.find("RAID", NotAvailable, "", "cannot read %s/mdstat", k.proc)
		return
	}
	for _, a := range arrays {
		name := "RAID " + a.Name
		switch {
		case a.DisksDown > 0 || a.DisksFailed > 0:
			r.find(name, Warn, "replace the disk that 'mdadm --detail /dev/"+a.Name+"' names",
				"%d of %d disks are missing or failed", max(a.DisksDown, a.DisksFailed), a.DisksTotal)
		case a.ActivityState != "active" && a.ActivityState != "inactive":
			r.find(name, Warn, "examine the machine again when 'cat /proc/mdstat' shows that this has ended",
				"it is %s", a.ActivityState)
		default:
			r.find(name, Pass, "", "%s, all %d disks", a.ActivityState, a.DisksTotal)
		}
	}
}

// word reads a one-line file of sysfs.
func word(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 64))
	return strings.TrimSpace(string(b)), err
}
