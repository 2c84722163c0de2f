// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs && long

package faults

import "time"

const (
	// patient selects all faults, as `make fault-table` does.
	patient = true
	// mostInAMinute limits the probe's writes in the minute before a fault, so that this minute includes none of the
	// qualifying run.
	mostInAMinute = 80
	// soon is how long it may take until the health state changes. A slow leader transfers leadership 2 s later.
	soon = 18 * time.Second
)
