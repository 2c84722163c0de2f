// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

// The codes of the check of fsync.
const (
	DiskFailed     Code = "DISK_FAILED"
	DiskStalled    Code = "DISK_STALLED"
	DiskFsyncSlow  Code = "DISK_FSYNC_SLOW"
	DiskFsyncWarm  Code = "DISK_FSYNC_WARM"
	DiskUnfit      Code = "DISK_UNFIT"
	DiskQualifying Code = "DISK_QUALIFYING"
	DiskProbeDown  Code = "DISK_PROBE_DOWN"
	DiskGathering  Code = "DISK_GATHERING"
)

// declareFsync declares the check of how long the disk takes to make a write durable.
func declareFsync(t Thresholds) declaration {
	return declaration{
		Check: Check{
			Name: fsyncName, Component: Disk, Gates: Everything, Vital: true,
			Source: "the probe, which writes as etcd's write-ahead log does and, beside that, past the page cache",
			Limits: []Limit{
				{Of: "one write in a hundred", Unit: "s", Enter: t.FsyncWarm.Seconds(), Leave: t.FsyncLeave.Seconds()},
				{Of: "any write", Unit: "s", Enter: t.FsyncSlow.Seconds(), Leave: t.FsyncSlow.Seconds()},
				{Of: "a write in flight", Unit: "s", Enter: t.Stall.Seconds(), Leave: t.Stall.Seconds()},
				{Of: "one that hangs for good", Unit: "s", Enter: t.Fail.Seconds(), Leave: t.Fail.Seconds()},
			},
			Problems: fsyncProblems(), Runbook: findingRunbook,
		},
		start: Unknown, startCode: DiskGathering,
		gather: func(at *track) evidence {
			return &fsync{limits: t, pace: t.pace(), track: at, score: score{value: scoreLeast}}
		},
	}
}

func fsyncProblems() []Problem {
	return []Problem{
		{
			DiskFailed, Disk, Failed, "The disk is broken.",
			"It gave back an error or other bytes than were written, or it held a write for longer than the kernel " +
				"lets a device hold a command. etcd cannot keep its promises on it.",
			"check 'journalctl -k' and 'smartctl -x' of the drive, and replace it. When the disk works again, " +
				"restart etcd ('quorumctl cycle'): a whole qualifying run without an error ends this state, and " +
				"so does a reboot",
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
	}
}
