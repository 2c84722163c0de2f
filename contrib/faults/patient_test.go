// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs && long

package faults

import "time"

const (
	// patient says that all faults are provoked, as `make fault-table` does.
	patient = true
	// mostInAMinute are writes of the probe: the minute before a fault holds none of the qualifying run.
	mostInAMinute = 80
	// soon is what a verdict may take: within it a slow leader has to be gone, which takes 2 s more.
	soon = 18 * time.Second
)
