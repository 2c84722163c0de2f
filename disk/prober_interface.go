// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import "time"

// Prober measures the disk under etcd's write-ahead log: a *Probe, or the probe of a simulation. Its methods never
// block.
type Prober interface {
	// Read returns the last measurements.
	Read() Reading
	// InFlight returns the age and the name of the operation in flight; 0 and OpNone if there is none.
	InFlight() (age time.Duration, op string)
	// SetBurst turns the bursts of [LaneWAL] on or off.
	SetBurst(on bool)
}
