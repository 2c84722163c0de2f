// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sensors

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/blockdevice"
	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/health"
)

// Devices returns what the kernel reports about the devices below the file system with this device number (st_dev).
func (r *Reader) Devices(device uint64) health.DevicesReading {
	dirs, chain, err := r.chain(device)
	if err != nil {
		silent := health.NotAvailable[health.DevicesReading](err.Error())
		if kind, readOnly, unsafe := r.options(device); kind != "" {
			fs := &silent.FileSystem
			fs.Type, fs.ReadOnly, fs.Unsafe = kind, readOnly, unsafe
		}
		return silent
	}
	out := health.DevicesReading{Chain: chain, At: r.now(), FileSystem: r.fileSystem(device, chain[0].Name)}
	for i := range chain {
		d := &chain[i]
		if d.Kind == "raid" {
			out.Arrays = append(out.Arrays, array(dirs[i], d.Name))
		}
		if d.Leaf() {
			d.Errors = timeouts(dirs[i])
			d.PCI = r.pci(dirs[i], d.AttachedTo)
		}
		if d.Leaf() || i == 0 && d.Kind != "partition" {
			d.Traffic = r.traffic(d.Name)
		}
	}
	for i, d := range chain {
		if d.Kind == "raid" {
			memberErrors(dirs[i], chain)
		}
	}
	return out
}

// array reads a RAID array.
func array(dir, name string) health.Array {
	a := health.Array{Name: name, Level: attribute(dir, "md/level"), Doing: attribute(dir, "md/sync_action")}
	state := attribute(dir, "md/array_state")
	a.Broken = state == "broken"
	n, err := strconv.ParseUint(attribute(dir, "md/degraded"), 10, 16)
	if err == nil {
		a.Missing = int(n)
	}
	if !slices.Contains(arrayStates(), state) || redundant(a.Level) && (err != nil || !isSyncAction(a.Doing)) {
		a.Absent = "the kernel reports an unknown array state"
	}
	for _, leg := range memberDevices(dir) {
		for state := range strings.SplitSeq(attribute(dir, filepath.Join("md", leg, "state")), ",") {
			if state == "faulty" {
				a.Failed = append(a.Failed, word(strings.TrimPrefix(leg, "dev-")))
			}
		}
	}
	done, all, both := strings.Cut(attribute(dir, "md/sync_completed"), " / ")
	n, err = strconv.ParseUint(done, 10, 64)
	of, err2 := strconv.ParseUint(all, 10, 64)
	if both && err == nil && err2 == nil && of > 0 && n <= of {
		a.Done = float64(n) / float64(of)
	}
	return a
}

// redundant reports whether an array keeps working without one of its member devices. Only for such an array does the
// kernel report the number of missing devices and the sync action.
func redundant(level string) bool { return level != "raid0" && level != "linear" }

// arrayStates returns the possible states of an array (md/array_state).
func arrayStates() []string {
	return []string{
		"clear", "inactive", "suspended", "readonly", "read-auto", "clean", "active", "write-pending", "active-idle",
		"broken",
	}
}

// isSyncAction reports whether the word is a sync action of an array (md/sync_action).
func isSyncAction(what string) bool {
	return slices.Contains([]string{"idle", "frozen", "check", "repair", "resync", "recover", "reshape"}, what)
}

// memberDevices returns the names of the directories of an array's member devices.
func memberDevices(dir string) []string {
	names, err := list(filepath.Join(dir, "md"))
	if err != nil {
		return nil
	}
	var out []string
	for _, name := range names {
		if strings.HasPrefix(name, "dev-") {
			out = append(out, name)
		}
	}
	return out
}

// memberErrors adds the read errors of the array's member devices to the errors of those devices in the chain.
func memberErrors(dir string, chain []health.Device) {
	for _, leg := range memberDevices(dir) {
		n, err := strconv.ParseUint(attribute(dir, filepath.Join("md", leg, "errors")), 10, 53)
		if err != nil {
			continue
		}
		for i := range chain {
			if chain[i].Name == strings.TrimPrefix(leg, "dev-") {
				chain[i].Errors = health.Figure{Value: chain[i].Errors.Value + float64(n), Known: true}
			}
		}
	}
}

// timeouts returns how many commands a drive has not answered in time. The kernel shows the number in hexadecimal.
func timeouts(dir string) health.Figure {
	text := attribute(dir, "device/iotmo_cnt")
	if text == "" {
		return health.Figure{Absent: "the kernel has no error counters for drives of this type"}
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 53)
	if err != nil {
		return health.Figure{Absent: "the kernel reports an invalid number of timed-out commands"}
	}
	return health.Figure{Value: float64(n), Known: true}
}

// traffic returns the I/O counters of a whole device, not of a partition.
func (r *Reader) traffic(name string) health.Traffic {
	const sector = 512 // bytes; the kernel counts in these units, whatever the device's sector size
	block, err := blockdevice.NewFS(r.proc, r.sys)
	if err != nil {
		return health.Traffic{}
	}
	s, n, err := block.SysBlockDeviceStat(name)
	if err != nil || n < 11 {
		return health.Traffic{}
	}
	ms := func(n uint64) time.Duration { return time.Duration(min(n, 1<<40)) * time.Millisecond }
	return health.Traffic{
		Known: true, Writes: s.WriteIOs, Flushes: s.FlushRequestsCompleted,
		Written: s.WriteSectors * sector, Read: s.ReadSectors * sector,
		WriteTime: ms(s.WriteTicks), FlushTime: ms(s.TimeSpentFlushing), Busy: ms(s.IOsTotalTicks),
		InFlight: s.IOsInProgress,
	}
}

// fileSystem reads what the kernel reports about a file system, given its device number and the name of its device.
func (r *Reader) fileSystem(number uint64, name string) health.FileSystem {
	var out health.FileSystem
	out.Type, out.ReadOnly, out.Unsafe = r.options(number)
	out.Errors = figure(r.noted(out.Type, name))
	if at, err := r.ext4(name, "last_error_time"); err == nil && at > 0 {
		out.LastError = time.Unix(int64(at), 0)
	}
	return out
}

// options returns the type of a file system, whether the file system and not just one of its mounts is read-only, and
// the mount option that disables flushes, if any.
func (r *Reader) options(number uint64) (kind string, readOnly health.Figure, unsafe string) {
	unknown := health.Figure{Absent: "the file system of etcd's data is not in " + r.proc + "/self/mountinfo"}
	proc, err := procfs.NewFS(r.proc)
	if err != nil {
		return "", unknown, ""
	}
	mounts, err := proc.GetMounts()
	if err != nil {
		return "", health.Figure{Absent: "cannot read " + r.proc + "/self/mountinfo"}, ""
	}
	for _, m := range mounts {
		if m.MajorMinorVer != fmt.Sprintf("%d:%d", unix.Major(number), unix.Minor(number)) {
			continue
		}
		readOnly = health.Figure{Known: true}
		for _, option := range []string{"ro", "emergency_ro", "shutdown"} {
			if _, is := m.SuperOptions[option]; is {
				readOnly.Value = 1
			}
		}
		if _, is := m.SuperOptions["nobarrier"]; is || m.SuperOptions["barrier"] == "0" {
			unsafe = "nobarrier"
		}
		return word(m.FSType), readOnly, unsafe
	}
	return "", unknown, ""
}

// noted returns how many errors a file system has recorded.
func (r *Reader) noted(kind, name string) (float64, error) {
	n, err := r.ext4(name, "errors_count")
	if errors.Is(err, fs.ErrNotExist) {
		if kind == "ext4" {
			return 0, absence("the kernel does not report errors for this ext4 file system")
		}
		return 0, absence("only ext4 has an error counter")
	}
	return n, err
}

// ext4 reads a number that an ext4 file system reports in sysfs.
func (r *Reader) ext4(name, number string) (float64, error) {
	path := filepath.Join(r.sys, "fs/ext4", name, number)
	text, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	if err != nil {
		return 0, absence("cannot read " + path)
	}
	return count(path, strings.TrimSpace(text))
}
