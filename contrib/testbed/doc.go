// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package testbed runs the real environment of quorumd: etcd members as processes on loopback, a network between them
// that can fail, a disk that can fail, a client that writes steadily and measures gaps, and invalid certificates.
//
// It is for tests and for the demo, never for quorumd itself. It promises that members and faulty disks end with the
// process that started them, that a port that it hands out stays free until the test ends, that every wait is bounded,
// and that it leaves no process, mount or goroutine behind.
//
// The binaries that it runs are built by `make etcd` and `make faultfs`; see contrib/etcd and contrib/faultfs.
package testbed
