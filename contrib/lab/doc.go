// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package lab makes real hosts on one machine. Each boots systemd as PID 1 in its own container, with its own address
// on a bridge and its own disk with a real file system. A test can cut power, network and disk at any time. All hosts
// share one read-only root file system, so that five of them boot within seconds.
//
// A lab runs in mount, network and process namespaces that Enter creates. Everything in them ends with the process that
// called Enter, however that process ends. That process also removes the control groups and files outside the
// namespaces. If it was killed, the next lab removes them.
//
// It needs root and Debian: Tools installs what is missing.
//
// All hosts share the machine's wall clock, because the kernel has only one. contrib/e2e tests a clock that jumps.
package lab
