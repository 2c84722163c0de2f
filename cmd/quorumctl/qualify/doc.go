// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package qualify benchmarks a machine before etcd runs on it: how long its disk takes to make a write durable, with
// one writer and with several, compared with etcd's guidance.
//
// It promises that it needs neither etcd nor quorumd; that only child processes access the disk, so that it reports a
// hanging disk and does not wait for it; that it leaves nothing on the disk, however the benchmark ends, unless it
// reports the leftovers; and that too few writes to prove anything are [Undecided], not passed.
package qualify
