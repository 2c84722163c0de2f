// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "slices"

// Component is the part of the machine a problem lies in.
type Component string

// The components.
const (
	Disk    Component = "disk"    // the one that holds the WAL of etcd
	Machine Component = "machine" // processor and memory
)

// Code is the one word for a problem, the same in the CLI, the log, the metric, the alert and the API.
type Code string

// The codes. [Problems] declares them.
const (
	DiskFailed       Code = "DISK_FAILED"
	DiskStalled      Code = "DISK_STALLED"
	DiskFsyncSlow    Code = "DISK_FSYNC_SLOW"
	DiskFsyncWarm    Code = "DISK_FSYNC_WARM"
	DiskUnfit        Code = "DISK_UNFIT"
	DiskQualifying   Code = "DISK_QUALIFYING"
	DiskProbeDown    Code = "DISK_PROBE_DOWN"
	DiskGathering    Code = "DISK_GATHERING"
	DiskSpaceLow     Code = "DISK_SPACE_LOW"
	DiskSpaceUnknown Code = "DISK_SPACE_UNKNOWN"
	CPUStarved       Code = "CPU_STARVED"
)

// Problem declares a code.
type Problem struct {
	Code      Code
	Component Component
	State     State  // the verdict that the problem alone calls for
	Title     string // one sentence
	Meaning   string // what it says about the machine and what it does to etcd
	Remedy    string // what the operator does
}

// Problems gives all declarations, the worst first.
func Problems() []Problem {
	return []Problem{
		{
			DiskFailed, Disk, Failed, "The disk is broken.",
			"It gave back an error or other bytes than were written, or it held a write for longer than the kernel " +
				"lets a device hold a command. etcd cannot keep its promises on it.",
			"look at 'journalctl -k' and 'smartctl -x' of the drive and replace it; then reboot this host, which " +
				"puts the disk to the proof again",
		},
		{
			DiskStalled, Disk, Stalled, "A write hangs on the disk right now.",
			"It has been in flight for longer than an election takes. etcd on this disk hangs too, and cannot be " +
				"stopped or restarted until the write comes back.",
			"look at 'journalctl -k' for resets and timeouts of the device; do not restart etcd or the agent, which " +
				"cannot end while the write hangs",
		},
		{
			DiskFsyncSlow, Disk, Slow, "The disk is too slow for etcd.",
			"Writes take as long as a heartbeat and more. A leader here makes the whole cluster slow, yet is not " +
				"voted out.",
			"look at 'iostat -x 1' for other writers and at 'smartctl -x' for wear and throttling; move the other " +
				"writers away, or replace the disk",
		},
		{
			DiskUnfit, Disk, Qualifying, "The disk did not pass its qualifying run.",
			"Its writes were slower than etcd needs. The run goes on over the newest writes, so the disk passes when " +
				"it has become fast enough.",
			"use a disk whose writes survive a power cut at this speed, best an SSD with power-loss protection, and " +
				"keep other writers off it",
		},
		{
			DiskQualifying, Disk, Qualifying, "The disk is in its qualifying run.",
			"Before its first join a host proves that its disk keeps up with what etcd writes.",
			"nothing; 'quorumctl health' shows how far it is",
		},
		{
			DiskFsyncWarm, Disk, Warm, "The disk is slower than it should be.",
			"More than one write in a hundred is slower than etcd's guide allows. The member works, but every write " +
				"of a leader here waits for it.",
			"look at 'iostat -x 1' for other writers and at 'smartctl -x' for the temperature of the drive",
		},
		{
			CPUStarved, Machine, Warm, "The processor is short.",
			"The agent was not woken in time while it measured, so those writes say nothing about the disk and are " +
				"left out. etcd waits for the processor in the same way.",
			"look at 'top' and /proc/pressure/cpu; move other work off this host, or give it a lower priority",
		},
		{
			DiskSpaceLow, Disk, Warm, "The disk is nearly full.",
			"There is less room than a join needs. An etcd that runs out of room stops.",
			"free some space on the file system of etcd's data directory, or lower disk.minFree",
		},
		{
			DiskProbeDown, Disk, Unknown, "There is no fresh measurement of the disk.",
			"The probe does not run, is kept from writing, or could measure nothing because the processor was short. " +
				"How the disk does is not known.",
			"look at 'journalctl -u quorumd' for what the probe says, and at the permissions and the free space of " +
				"disk.probeDir",
		},
		{
			DiskGathering, Disk, Unknown, "There are not enough measurements of the disk yet.",
			"It takes that many to tell a disk that is slow from one that was slow once.",
			"nothing; 'quorumctl health' shows how far it is",
		},
		{
			DiskSpaceUnknown, Disk, Unknown, "It is not known how full the disk is.",
			"The probe has not asked yet, or the file system does not answer.",
			"if it stays so, look at 'journalctl -u quorumd' for what the probe says",
		},
	}
}

// Problem gives the declaration of the code, and false if there is none.
func (c Code) Problem() (Problem, bool) {
	all := Problems()
	i := slices.IndexFunc(all, func(p Problem) bool { return p.Code == c })
	if i < 0 {
		return Problem{}, false
	}
	return all[i], true
}
