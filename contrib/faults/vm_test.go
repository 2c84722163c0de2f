// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build vm

package faults

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// machineFault is what is done to the virtual machine.
type machineFault struct {
	name, how string
	disk      string // shell that makes the device for the data of a new host and prints its name; or the host goes on
	warns     int    // the critical warnings that nvme0 shows from then on
	after     int    // seconds that it has to be up before
	first     string // shell, before the fault
	begins    string // shell
	ends      string // shell, when it was found
	wants     seen
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
	// all ends what was done, in any order of what there is.
	all = "dmsetup resume sick; for i in $(seq 50); do umount /data && break; sleep 0.2; done; " +
		"dmsetup remove --force --retry sick; mdadm --stop /dev/md0; rm -rf /run/a; true"
)

// seldom is longer than a check takes that looks once in a while.
const seldom = 3 * time.Minute

func machineFaults() []machineFault {
	return []machineFault{
		{
			name: "a leg of a RAID 1 fails", how: "`mdadm --fail`", disk: onRAID,
			begins: "mdadm --quiet /dev/md0 --fail /dev/nvme2n1", wants: seen{"OK", "RAID_DEGRADED", seldom},
		},
		{
			name: "an NVMe drive warns that it is unreliable and read-only",
			how:  "critical warning 0x0c, set in the drive; asked at once, not half-hourly", warns: 0x0c,
			begins: "mkdir -p /run/quorumd-smart && quorumd ask-drives", wants: seen{"OK", "DRIVE_FAILING", seldom},
		},
		{
			name: "the kernel kills a process for want of memory", how: "`tail /dev/zero`",
			begins: "tail /dev/zero || true", wants: seen{"OK", "PROCESSES_KILLED", seldom},
		},
		{
			name: "every write to the device takes 300 ms", how: "`dm-delay`", disk: onMapper,
			begins: remap + "delay /dev/nvme0n1 0 0 /dev/nvme0n1 0 300" + resumed,
			wants:  seen{"WARM", "DISK_FSYNC_WARM", seldom},
		},
		{
			name: "then the device does not answer", how: "`dmsetup suspend`",
			begins: "dmsetup suspend --nolockfs sick",
			wants:  seen{"STALLED", "DISK_STALLED", seldom},
		},
		{
			name: "then the device fails", how: "`dmsetup load … error`", begins: remap + "error" + resumed,
			wants: seen{"FAILED", "DISK_FAILED", seldom},
		},
		{
			name: "and ext4 takes no writes any more", how: "the same", begins: "true",
			wants: seen{"FAILED", "FILESYSTEM_READ_ONLY", seldom},
		},
		{
			name: "the file system is full", how: "`fallocate`", disk: onDrive,
			begins: "fallocate -l $(df --output=avail -B1 /data | tail -n 1) /data/much",
			wants:  seen{"WARM", "DISK_SPACE_LOW", seldom},
		},
	}
}

// What etcd's traffic runs over: a bond of two virtual cables, whose other ends are in nobody's hands.
const cables = "ip link add bond1 type bond mode active-backup miimon 100; " +
	"for i in 0 1; do ip link add leg$i type veth peer name far$i; ip link set leg$i down; " +
	"ip link set leg$i master bond1; ip link set far$i up; done; " +
	"ip link set bond1 up; ip addr add " + peerAddress + "/24 dev bond1"

// aroundFaults are those of what is around the disk. None of them may be blamed on it.
func aroundFaults() []machineFault {
	const answers = "/share/answer.json"
	return []machineFault{
		{
			name: "a leg of a bond loses its link", how: "`ip link set … down` at the other end of its cable",
			disk: onDrive, begins: "ip link set far1 down", wants: seen{"OK", "LINK_DOWN", seldom},
		},
		{
			name: "its link comes and goes", how: "the same, up and down",
			begins: "for i in 1 2; do ip link set far1 up; sleep 1; ip link set far1 down; sleep 1; done",
			ends:   "ip link set far1 up", wants: seen{"OK", "LINK_FLAPPING", seldom},
		},
		{
			name: "memory is short", how: "a file in a tmpfs that leaves 6 % of the memory",
			first: "mkdir -p /hog && mount -t tmpfs -o size=100% hog /hog",
			begins: "head -c $(awk '/^MemTotal/ {t = $2} /^MemAvailable/ {a = $2} " +
				"END {printf \"%d\", (a - 0.06 * t) * 1024}' /proc/meminfo) /dev/zero >/hog/much",
			ends: "umount /hog", wants: seen{"OK", "MEMORY_LOW", seldom},
		},
		{
			name: "a drive is worn out", how: "`smartctl` answers as in disk/smart/testdata/nvme.json; asked at once",
			first: "printf '#!/bin/sh\\ncat " + answers + "\\n' >/tmp/smartctl && chmod +x /tmp/smartctl && " +
				"mv /tmp/smartctl /usr/sbin/smartctl && mkdir -p /run/quorumd-smart",
			begins: "quorumd ask-drives", wants: seen{"OK", "DRIVE_WORN", seldom},
		},
		{
			name: "then it counts more errors of its medium", how: "the same, with 15 media errors for 12",
			begins: `sed -i 's/"media_errors": 12/"media_errors": 15/' ` + answers + " && quorumd ask-drives",
			wants:  seen{"OK", "DRIVE_ERRORS", seldom},
		},
		{
			name: "the clock is set ahead by 90 s", how: "`date --set`", after: 610, // a clock is set after the boot
			begins: "date --set=@$(($(date +%s) + 90))", wants: seen{"OK", "CLOCK_STEPPED", seldom},
		},
	}
}

// TestMachineFaultsAreFoundInTime has one fault after the other; a host that is new has just found that all is well.
func TestMachineFaultsAreFoundInTime(t *testing.T) {
	t.Parallel()
	m := boot(t)
	made := tableOf(t, "machine")
	for i, f := range machineFaults() {
		m.happens(made, i, f)
	}
}

// TestMachineFaultsAroundTheDiskAreFoundInTime has the faults of what is around the disk.
func TestMachineFaultsAroundTheDiskAreFoundInTime(t *testing.T) {
	t.Parallel()
	m := boot(t)
	answer, err := os.ReadFile(filepath.Join("..", "..", "disk", "smart", "testdata", "nvme.json"))
	if err == nil {
		err = os.WriteFile(filepath.Join(m.dir, "answer.json"), answer, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	made := tableOf(t, "around")
	for i, f := range aroundFaults() {
		m.happens(made, i, f)
		for _, found := range m.shown("a").Findings {
			if found.Component == "disk" {
				t.Errorf("%s: the disk is blamed: %+v", f.name, found)
			}
		}
	}
}

func (m *machine) happens(made *table, i int, f machineFault) {
	t := m.t
	t.Helper()
	if f.disk != "" {
		m.end("a")
		m.try(all)
		device := strings.TrimSpace(m.run(f.disk))
		m.run("mkfs.ext4 -q -F -E nodiscard " + device +
			" && mkdir -p /data && mount -o errors=remount-ro " + device + " /data")
		m.agent("a", "/data")
	}
	if f.warns != 0 {
		m.set("nvme0", "smart_critical_warning", f.warns)
	}
	for m.up() < f.after {
		m.run("sleep 5")
	}
	m.run("set -e; " + cmp.Or(f.first, "true"))
	began := time.Now()
	m.run("set -e; " + f.begins)
	last := m.until("a", f.wants.within, f.wants.verdict, f.wants.code)
	made.note(t, i, Row{Fault: f.name, How: f.how}, time.Since(began), last, f.wants.code)
	m.run("set -e; " + cmp.Or(f.ends, "true"))
}

// up is for how many seconds the machine has been up.
func (m *machine) up() int {
	m.t.Helper()
	seconds, err := strconv.Atoi(strings.TrimSpace(m.run("cut -d. -f1 /proc/uptime")))
	if err != nil {
		m.t.Fatal(err)
	}
	return seconds
}
