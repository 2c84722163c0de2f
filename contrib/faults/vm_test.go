// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build vm

package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// machineFault is a fault of the virtual machine and how quorumd has to report it.
type machineFault struct {
	name, how string
	disk      string // shell that creates the data device of a new host and prints its name; empty: same host
	warns     int    // critical warnings of nvme0 from this fault on
	slow      string // rule of contrib/faultfs for the file behind nvme0, until the next new host
	smartctl  string // recorded output of smartctl, until the next fault
	unplugged string // interface of the bond without a cable until the fault is detected
	first     string // shell that prepares the fault
	begins    string // shell that begins the fault
	ends      string // shell that ends the fault, after it is detected
	wants     expectation
	cause     string // expected cause
	text      string // expected text
}

// The devices.
const (
	onDrive = "echo /dev/nvme0n1"
	onRAID  = "mdadm --quiet --create /dev/md0 --run --level=1 --raid-devices=2 --assume-clean --bitmap=none " +
		"/dev/nvme1n1 /dev/nvme2n1 >&2; echo /dev/md0"
	sectors  = "$(blockdev --getsz /dev/nvme0n1)"
	onMapper = `dmsetup create sick --table "0 ` + sectors + ` linear /dev/nvme0n1 0" && dmsetup mknodes && ` +
		"echo /dev/mapper/sick"
	remap   = `dmsetup suspend --nolockfs sick; dmsetup load sick --table "0 ` + sectors + ` `
	resumed = `"; dmsetup resume sick`
	// all ends the faults and removes what they have created, whatever that is.
	all = "dmsetup resume sick; for i in $(seq 50); do umount /data && break; sleep 0.2; done; " +
		"dmsetup remove --force --retry sick; mdadm --stop /dev/md0; rm -rf /run/a; true"
)

// askDrives queries the drives at once.
const askDrives = "mkdir -p /run/quorumd-smart && quorumd ask-drives"

// readLog reads the kernel's log at once.
const readLog = "mkdir -p /run/quorumd-kernel-log && quorumd read-kernel-log"

// recordedDrive returns the output of smartctl 7.3 for a drive with these percentages of available spare blocks and of
// used life, and with this number of media errors.
func recordedDrive(spare, used, errors int) string {
	return fmt.Sprintf(`{"smartctl": {"version": [7, 3], "exit_status": 0}, "model_name": "EXAMPLE DC 960",
 "serial_number": "EX0001", "smart_status": {"passed": true, "nvme": {"value": 0}},
 "nvme_smart_health_information_log": {"critical_warning": 0, "temperature": 41, "available_spare": %d,
  "available_spare_threshold": 10, "percentage_used": %d, "media_errors": %d, "num_err_log_entries": 900}}`,
		spare, used, errors)
}

// hog starts a process that needs more memory than its limit of 64 MiB. The kernel makes the process wait for every
// page that it cannot reclaim.
const (
	group = "/sys/fs/cgroup/memory-hog"
	hog   = "{ mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup; } && " +
		"echo +memory >/sys/fs/cgroup/cgroup.subtree_control && mkdir -p " + group + " && " +
		"echo 64M >" + group + "/memory.high && " +
		"{ setsid sh -c 'echo $$ >" + group + "/cgroup.procs && exec tail /dev/zero' & } && " +
		"sleep 1 && grep -q . " + group + "/cgroup.procs"
	endOfHog = "echo 1 >" + group + "/cgroup.kill"
)

// replaceSmartctl replaces the output of smartctl with a recorded one, or restores it.
func (m *machine) replaceSmartctl(what string) {
	m.t.Helper()
	m.try("umount /usr/sbin/smartctl")
	if what == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(m.dir, "said.json"), []byte(what), 0o644); err != nil {
		m.t.Fatal(err)
	}
	m.run(`printf '#!/bin/sh\ncat /share/said.json\n' >/run/smartctl && chmod +x /run/smartctl && ` +
		"mount --bind /run/smartctl /usr/sbin/smartctl")
}

// allChecks is longer than the longest interval of any check.
const allChecks = 3 * time.Minute

func machineFaults() []machineFault {
	return []machineFault{
		{
			name: "a member device of a RAID 1 fails", how: "`mdadm --fail`", disk: onRAID,
			begins: "mdadm --quiet /dev/md0 --fail /dev/nvme2n1", wants: expectation{"OK", "RAID_DEGRADED", allChecks},
		},
		{
			name:   "an NVMe drive is hotter than its own limit",
			how:    "its limit set below its temperature, in the drive (`temp1_max` of its hwmon)",
			begins: "limit=$(echo /sys/class/nvme/nvme0/hwmon*/temp1_max); echo 20000 >$limit",
			wants:  expectation{"OK", "DRIVE_HOT", 2 * allChecks},
		},
		{
			name: "a drive is worn out", how: "smartctl output of a drive with 103 % of its life used",
			smartctl: recordedDrive(72, 103, 12), begins: askDrives, wants: expectation{"OK", "DRIVE_WORN", allChecks},
		},
		{
			name: "then it counts media errors", how: "the same with 3 more errors",
			smartctl: recordedDrive(72, 103, 15), begins: askDrives,
			wants: expectation{"OK", "DRIVE_ERRORS", allChecks},
		},
		{
			name: "a drive has few spare blocks left", how: "smartctl output of a drive with 4 % " +
				"of them, and a threshold of 10 %",
			smartctl: recordedDrive(4, 60, 15), begins: askDrives, wants: expectation{"OK", "DRIVE_WORN", allChecks},
			text: "spare blocks",
		},
		{
			name: "an NVMe drive warns that it is unreliable and read-only",
			how:  "critical warning 0x0c, set in the drive; read at once, not half-hourly", warns: 0x0c,
			begins: askDrives, wants: expectation{"OK", "DRIVE_FAILING", allChecks},
		},
		{
			name:      "an interface of a bond loses its link",
			how:       "the cable of a virtual network card is pulled (`set_link`)",
			unplugged: "leg1", wants: expectation{"OK", "LINK_DOWN", allChecks},
		},
		{
			name: "the OOM killer kills a process", how: "`tail /dev/zero`",
			begins: "tail /dev/zero || true", wants: expectation{"OK", "PROCESSES_KILLED", allChecks},
		},
		{
			name: "all processes wait for memory", how: "a process that needs more than `memory.high` of its cgroup",
			begins: hog, ends: endOfHog, wants: expectation{"OK", "MEMORY_PRESSURE", allChecks},
		},
		{
			name: "a block outside etcd's data is unreadable",
			how:  "`dmsetup load … error` at the end of the device; the log is read at once", disk: onMapper,
			first: readLog + "; sleep 70", // the agent needs the number of earlier errors
			begins: `end=$((` + sectors + ` - 2048)); dmsetup suspend --nolockfs sick; ` +
				`printf '0 %d linear /dev/nvme0n1 0\n%d 2048 error\n' $end $end | dmsetup load sick; ` +
				`dmsetup resume sick; dd if=/dev/mapper/sick of=/dev/null bs=512 count=1 skip=$((end + 1024)) || true; ` +
				readLog,
			wants: expectation{"OK", "KERNEL_LOG_ERRORS", allChecks},
		},
		{
			name: "every flush of the drive takes 300 ms",
			how:  "`fsync * delay=300ms` of contrib/faultfs under the virtual drive", disk: onMapper,
			slow: "fsync * delay=300ms", wants: expectation{"WARM", "DISK_FSYNC_WARM", allChecks}, cause: "device",
		},
		{
			name: "then the device stops answering", how: "`dmsetup suspend`",
			begins: "dmsetup suspend --nolockfs sick",
			wants:  expectation{"STALLED", "DISK_STALLED", allChecks}, cause: "device",
		},
		{
			name: "then the device fails", how: "`dmsetup load … error`", begins: remap + "error" + resumed,
			wants: expectation{"FAILED", "DISK_FAILED", allChecks},
		},
		{
			name: "the file system is full", how: "`fallocate`", disk: onDrive,
			begins: "fallocate -l $(df --output=avail -B1 /data | tail -n 1) /data/much",
			wants:  expectation{"WARM", "DISK_SPACE_LOW", allChecks},
		},
		{
			name: "the clock is stepped", how: "`date --set`, a minute forward", disk: onDrive,
			// Wait ten minutes: a host without an RTC battery always sets its clock soon after boot.
			first:  "while [ $(cut -d. -f1 /proc/uptime) -lt 630 ]; do sleep 1; done",
			begins: "date --set=@$(($(date +%s) + 60))", wants: expectation{"OK", "CLOCK_STEPPED", allChecks},
		},
	}
}

// TestMachineFaultsAreFoundInTime injects one fault after another. A new host starts healthy.
func TestMachineFaultsAreFoundInTime(t *testing.T) {
	t.Parallel()
	m := boot(t)
	made := tableOf(t, "machine")
	for i, f := range machineFaults() {
		if !t.Run(f.name, func(t *testing.T) { f.run(m.of(t), made, i) }) {
			break // the next fault may depend on this one
		}
	}
}

func (f machineFault) run(m *machine, made *table, i int) {
	m.t.Helper()
	if f.disk != "" {
		m.end("a")
		if err := m.flash.Clear(); err != nil {
			m.t.Fatal(err)
		}
		m.try(all)
		device := strings.TrimSpace(m.run(f.disk))
		m.run("mkfs.ext4 -q -F -E nodiscard " + device +
			" && mkdir -p /data && mount -o errors=remount-ro " + device + " /data")
		m.agent("a", "/data")
	}
	if f.warns != 0 {
		m.set("nvme0", "smart_critical_warning", f.warns)
	}
	m.replaceSmartctl(f.smartctl)
	m.run("set -e; true; " + f.first)
	began := time.Now()
	if f.unplugged != "" {
		m.plug(f.unplugged, false)
	}
	if f.slow != "" {
		if err := m.flash.Rule(f.slow); err != nil {
			m.t.Fatal(err)
		}
	}
	m.run("set -e; true; " + f.begins)
	last := m.until("a", f.wants, "", f.text)
	took := time.Since(began)
	if f.cause != "" { // the cause is known after the next reading of the drives
		last = m.until("a", f.wants, f.cause, f.text)
	}
	made.addShown(m.t, i, Row{Fault: f.name, How: f.how, Recorded: f.smartctl != ""}, took, last, f.wants.code)
	m.run("set -e; true; " + f.ends)
	if f.unplugged != "" {
		m.plug(f.unplugged, true)
	}
}

// of returns the machine for a subtest.
func (m *machine) of(t *testing.T) *machine {
	part := *m
	part.t = t
	return &part
}
