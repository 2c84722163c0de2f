// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e contains the end-to-end tests: whole agents with real etcd, as plain processes on loopback. The tests
// kill and stop them, cut them off and send them false answers. The package contains only tests.
//
// A test creates a group of hosts, called a world. Its agents run this test program itself; see TestMain. A test can
// stop an agent at the start or end of any step, to inject a fault at exactly that point. It checks the result in etcd
// itself and on disk, and never relies on the agents' reports alone; see world.verify.
package e2e
