// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs && !long

package faults

import "time"

const (
	// patient says that all faults are provoked, as `make fault-table` does.
	patient = false
	// mostInAMinute are writes of the probe: the minute before a fault may hold all of a qualifying run.
	mostInAMinute = 1 << 20
	// soon is what a verdict may take, on a machine that is busy with something else too.
	soon = 2 * time.Minute
)
