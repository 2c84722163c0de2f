// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e holds the end-to-end tests: whole agents with real etcd, as plain processes on loopback, that are killed,
// stopped, cut off and lied to. It has no code of its own.
//
// A test makes a world of hosts. The agents are this very test program, started again; see TestMain. It can be made to
// stand still at the begin or end of any step, so that a test strikes exactly there and not somewhere near it. What a
// world has come to is checked on etcd itself and on disk, never only by what the agents say; see world.verify.
package e2e
