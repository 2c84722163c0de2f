// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build vm

package faults

import (
	"strings"
	"testing"
	"time"
)

// machineFault is what is done to the virtual machine.
type machineFault struct {
	name, how string
	disk      string // shell that makes the device for the data of a new host and prints its name; or the host goes on
	warns     int    // the critical warnings that nvme0 shows from then on
	begins    string // shell
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
			name: "the file system is full", how: "`fallocate`", disk: onDrive,
			begins: "fallocate -l $(df --output=avail -B1 /data | tail -n 1) /data/much",
			wants:  seen{"WARM", "DISK_SPACE_LOW", seldom},
		},
	}
}

// TestMachineFaultsAreFoundInTime has one fault after the other; a host that is new has just found that all is well.
func TestMachineFaultsAreFoundInTime(t *testing.T) {
	t.Parallel()
	m := boot(t)
	made := tableOf(t, "machine")
	for i, f := range machineFaults() {
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
		began := time.Now()
		m.run("set -e; " + f.begins)
		last := m.until("a", f.wants.within, f.wants.verdict, f.wants.code)
		made.note(t, i, Row{Fault: f.name, How: f.how}, time.Since(began), last, f.wants.code)
	}
}
