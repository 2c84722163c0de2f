// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package disk measures the disk under etcd: how long it takes to make a write durable, whether an operation hangs on
// it right now, how full it is, and whether the device itself makes progress.
//
// # The probe
//
// A [Probe] runs a child process that makes small durable writes next to etcd's own files and measures them. It
// promises:
//
//   - The parent never touches the measured disk, not even with stat. A thread stuck in the kernel cannot be killed and
//     keeps the resources of its process, so everything that may get stuck happens in the child, which holds nothing
//     but its own files.
//   - A hanging operation is reported while it hangs. Before the child begins an operation, it records the start in
//     shared memory, from which the parent calculates the operation's age. This needs no response from the child.
//   - At most one operation is in flight, so at most one thread is ever stuck. A hanging child is never replaced. A
//     dead child is replaced after a backoff of 1 s, which doubles up to 1 min.
//   - No call of the parent waits for the child, except [Probe.Close], which waits for at most about 2 s (6 s for an
//     examination).
//   - An error is a reading like any other. The child reports it, tries again, and never stops because of an error.
//
// # The two lanes
//
// [LaneDirect], once a second: 4096 bytes at a rotating offset of a file of 1 MiB that was written completely once,
// bypassing the page cache and with O_DSYNC. Each write causes one write and one flush of the device and no journal
// commit, so the lane measures the device and hardly anything else. Once a minute the last written block is read back
// and compared.
//
// [LaneWAL], every 10 s: 2300 bytes appended to a preallocated file, then fdatasync, as etcd does for its write-ahead
// log. Turning allocated space into written space needs a journal commit and a second flush, which the direct lane does
// not cause. In a burst, the lane writes up to 50 times a second; bursts are for the qualifying run of a machine
// without a voter.
//
// Latency is measured on CLOCK_MONOTONIC around the system calls alone. In the WAL lane it is the latency of the slower
// of the two calls: normally the fdatasync, as etcd counts it (etcd_disk_wal_fsync_duration_seconds). Opening,
// allocating, renaming, reading back and querying the free space are not samples, but each is visible while it is in
// flight. A sample is marked contaminated if a 10 ms timer in the same process was more than 5 ms late just before
// or during the write, and late by more than a quarter of the latency in total. The cause of such a latency is CPU
// starvation, not the disk.
//
// An examination ([Options.Exam]) is for a disk that is not in use yet. It uses LaneWAL alone, without rests, and
// leaves no files behind.
//
// An operation of more than 100 ms is followed by a rest of ten times its length, up to one minute, so that the probe
// adds little load to a disk in trouble. The first two slow operations are an exception, unless they take more than 3 s
// in total: the next operation follows after the usual time, but at least 1 s, so that three operations soon show
// whether the disk stays slow. After the third, the lane rests ten times as long as all three took.
//
// # Cost
//
// On the disk: 1 MiB for LaneDirect, 4 MiB for LaneWAL (8 MiB while it replaces its file), and an empty lock file. The
// files remain when the probe ends, and the next probe reuses them.
//
// At the default intervals: 86,400 writes of 4096 bytes a day (354 MB) and as many flushes; 8,640 appends (20 MB of
// content) with two flushes each, and a new file every 5 hours. With what the file system adds (partial pages, the
// journal, a commit every 5 s for the time stamps), ext4 turned that into 435 MB and 121,000 flushes a day. A burst
// adds about 50 appends and 100 flushes a second while it lasts. Every start adds 1 MiB. The space is read every 30 s,
// and 4096 bytes are read every minute. CPU: 0.2 % of one core at rest, 2.5 % in a burst; 6 MB of memory.
package disk
