// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "cmp"

// Figure is a number that may be missing. The zero value means not measured. As everywhere in this package, the reason
// for a missing reading is a stable text: it contains no numbers that change from one reading to the next.
type Figure struct {
	Value float64
	// Known means that there is one; otherwise Absent is the reason, as a stable text.
	Known  bool
	Absent string
}

// notYet is the reason before the first measurement.
const notYet = "not measured yet"

// absent returns why there is no figure; empty if there is one.
func (f Figure) absent() string {
	if f.Known {
		return ""
	}
	return cmp.Or(f.Absent, notYet)
}
