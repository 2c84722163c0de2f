// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs && !long

package faults

import "time"

const (
	// patient selects all faults, as `make fault-table` does. Here only the faults that take seconds are injected.
	patient = false
	// mostInAMinute limits the probe's writes in the minute before a fault. This minute may include a whole qualifying
	// run.
	mostInAMinute = 1 << 20
	// soon is how long it may take until the health state changes on a busy machine.
	soon = 2 * time.Minute
)
