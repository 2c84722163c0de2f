// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "cmp"

// Figure is a number that may not be there. The zero value means not measured.
type Figure struct {
	Value float64
	// Known says that there is one, and Absent otherwise why not, without numbers that change.
	Known  bool
	Absent string
}

// notYet is the reason before the first measurement.
const notYet = "not measured yet"

// absent returns why there is no figure; empty when there is.
func (f Figure) absent() string {
	if f.Known {
		return ""
	}
	return cmp.Or(f.Absent, notYet)
}
