// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e holds the end-to-end tests: whole agents with real etcd, as plain processes on loopback, that are killed,
// stopped, cut off and sent false answers. It has no code of its own.
//
// A test makes a world of hosts. The agents are this very test program, started again; see TestMain. An agent can be
// stopped at the start or end of any step, so that a test strikes exactly there and not somewhere near. A test checks
// the result on etcd itself and on disk, never by the agents' reports alone; see world.verify.
package e2e
