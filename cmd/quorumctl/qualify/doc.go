// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package qualify benchmarks a machine before etcd runs on it. It measures how long the disk takes to make a write
// durable, with one writer and with several, and compares that with etcd's guidance.
//
// It promises:
//   - It needs neither etcd nor quorumd.
//   - Child processes write to the disk. The package reports a hanging disk and does not wait for it.
//   - However the benchmark ends, it leaves no files on the disk, or reports those that it cannot remove.
//   - Too few writes to prove anything are [Undecided], not passed.
package qualify
