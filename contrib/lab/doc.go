// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package lab makes real hosts on one machine: each boots systemd as PID 1 in a container of its own, has its own
// address on a bridge, its own disk with a real file system, and loses power, network or disk at a word. All hosts
// share one read-only root file system, so that five of them are up in seconds.
//
// A lab lives in mount, network and process namespaces that Enter makes. All that is in them ends with the process that
// made them, however that ends; what lies outside of them (control groups and files) is swept by that process, or by
// the next lab if it was killed.
//
// It needs root, and Debian: Tools installs what is missing.
//
// The wall clock is not a host's own: the kernel has one for the whole machine. A clock that jumps is played in
// contrib/e2e.
package lab
