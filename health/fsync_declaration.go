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
func declareFsync(t Thresholds, c *comparison) declaration {
	return declaration{
		Check: Check{
			Name: fsyncName, Component: Disk, Gates: Everything, Vital: true,
			Source: "the probe: WAL-like writes (append and fdatasync, as etcd does) and direct writes (one block, " +
				"O_DIRECT)",
			Limits: []Limit{
				{Of: "p99 of the writes", Unit: "s", Enter: t.FsyncWarm.Seconds(), Leave: t.FsyncClear.Seconds()},
				{Of: "latency of a write", Unit: "s", Enter: t.FsyncSlow.Seconds(), Leave: t.FsyncSlow.Seconds()},
				{Of: "age of a write in flight", Unit: "s", Enter: t.Stall.Seconds(), Leave: t.Stall.Seconds()},
				{Of: "age of a hanging write", Unit: "s", Enter: t.Fail.Seconds(), Leave: t.Fail.Seconds()},
			},
			Problems: fsyncProblems(), Runbook: findingRunbook,
		},
		start: Unknown, startCode: DiskGathering,
		gather: func(at *track) evidence {
			c.disk = at
			return &fsync{limits: t, pace: t.pace(), track: at, compared: c, score: score{value: scoreLeast}}
		},
	}
}

func fsyncProblems() []Problem {
	return []Problem{
		{
			DiskFailed, Disk, Failed, "The disk has failed.",
			"It returned an error or different data from what was written, or a write hung for longer than the " +
				"kernel's own timeout for a command. etcd's data is not safe on it.",
			"check 'journalctl -k' and 'smartctl -x' of the drive, and replace it. When the disk works again, " +
				"restart etcd ('quorumctl cycle'): the state clears after a full qualifying run without an error, " +
				"or after a reboot",
		},
		{
			DiskStalled, Disk, Stalled, "A write is hanging on the disk.",
			"It has been in flight for longer than an election takes. etcd hangs on this disk too, and cannot be " +
				"stopped or restarted until the write returns.",
			"check 'journalctl -k' for resets and timeouts of the device; do not restart etcd or quorumd: their " +
				"processes that use the disk cannot exit while the write hangs",
		},
		{
			DiskFsyncSlow, Disk, Slow, "The disk is too slow for etcd.",
			"Writes take as long as a heartbeat interval or longer. A leader on this disk slows the whole cluster " +
				"down without losing its leadership.",
			"check 'iostat -x 1' for other writers and 'smartctl -x' for wear and throttling; move the other " +
				"writers away, or replace the disk",
		},
		{
			DiskUnfit, Disk, Qualifying, "The disk failed its qualifying run.",
			"Its writes are slower than etcd needs. The run continues over the newest writes, so the disk passes " +
				"once it is fast enough.",
			"use a disk that makes writes durable fast enough, ideally an SSD with power-loss protection, and " +
				"keep other writers off it",
		},
		{
			DiskQualifying, Disk, Qualifying, "The disk is in its qualifying run.",
			"Before its first join, a host proves that its disk is fast enough for etcd.",
			"none; 'quorumctl health' shows the progress",
		},
		{
			DiskFsyncWarm, Disk, Warm, "The disk is slower than recommended for etcd.",
			"More than 1 % of the writes are slower than etcd's hardware guide allows, or single writes are very " +
				"slow. The member works, but while it leads, every write waits for this disk.",
			"check 'iostat -x 1' for other writers and 'smartctl -x' for the temperature of the drive",
		},
		{
			DiskProbeDown, Disk, Unknown, "There is no recent measurement of the disk.",
			"The probe is not running, cannot write, or has only samples taken under CPU starvation. The state of " +
				"the disk is unknown.",
			"check 'journalctl -u quorumd' for messages of the probe, and the permissions and free space of " +
				"disk.probeDir; under CPU starvation, move other workloads off this host",
		},
		{
			DiskGathering, Disk, Unknown, "There are not enough measurements of the disk yet.",
			"Too few samples cannot distinguish a slow disk from a single slow write.",
			"none; 'quorumctl health' shows the progress",
		},
	}
}
