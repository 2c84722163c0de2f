// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package lab makes real hosts on one machine. Each boots systemd as PID 1 in a container of its own, with its own
// address on a bridge and its own disk with a real file system. Power, network and disk can be taken away on demand.
// All hosts share one read-only root file system, so that five of them are up in seconds.
//
// A lab lives in mount, network and process namespaces that Enter makes. Everything in them ends with the process that
// made them, however that ends. Control groups and files outside of them are removed by that process, or by the next
// lab if it was killed.
//
// It needs root, and Debian: Tools installs what is missing.
//
// Hosts have no wall clock of their own: the kernel has one for the whole machine. contrib/e2e plays a clock that
// jumps.
package lab
